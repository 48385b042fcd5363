import jakarta.jms.Connection;
import jakarta.jms.DeliveryMode;
import jakarta.jms.Destination;
import jakarta.jms.JMSException;
import jakarta.jms.MapMessage;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import jakarta.jms.TemporaryQueue;
import jakarta.jms.TextMessage;
import jakarta.jms.Topic;
import java.net.URI;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import org.apache.qpid.jms.JmsConnectionFactory;
import org.apache.qpid.jms.provider.exceptions.ProviderDeliveryModifiedException;
import org.apache.qpid.jms.provider.exceptions.ProviderDeliveryReleasedException;

/** Qpid JMS as a test client. Arguments and output are those that client.py describes. */
public final class JmsClient {
    private static final long REPLY_MS = 20_000;
    private static final long RETRY_MS = 50;

    private final Map<String, String> options = new HashMap<>();
    private final int count;
    private final Connection connection;
    private final Session session;

    public static void main(String[] args) throws Exception {
        Map<String, String> options = new HashMap<>();
        for (String arg : args) {
            String[] pair = arg.split("=", 2);
            options.put(pair[0], pair[1]);
        }
        try (Connection connection = connect(options)) {
            new JmsClient(connection, options).run();
        }
        System.out.println("done");
    }

    private static Connection connect(Map<String, String> options) throws Exception {
        URI first = URI.create(options.get("urls").split(",")[0]);
        JmsConnectionFactory factory = new JmsConnectionFactory(remoteUri(options.get("urls")));
        if (first.getUserInfo() != null) {
            String[] user = first.getUserInfo().split(":", 2);
            factory.setUsername(user[0]);
            factory.setPassword(user[1]);
        }
        Connection connection = factory.createConnection();
        if (options.containsKey("container_id")) {
            connection.setClientID(options.get("container_id"));
        }
        return connection;
    }

    private static String remoteUri(String urls) {
        String bare = urls.replaceAll("//[^@/,]*@", "//");
        return bare.contains(",") ? "failover:(" + bare + ")?failover.initialReconnectDelay=50&failover.reconnectDelay=50" : bare;
    }

    private JmsClient(Connection connection, Map<String, String> options) throws JMSException {
        this.options.putAll(options);
        this.count = Integer.parseInt(options.get("count"));
        this.connection = connection;
        this.session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        connection.start();
    }

    private void run() throws Exception {
        switch (options.get("mode")) {
            case "send" -> send();
            case "receive" -> receive();
            case "request" -> request();
            case "respond" -> respond();
            case "unsubscribe" -> session.unsubscribe(options.get("subscription"));
            default -> throw new IllegalArgumentException(options.get("mode"));
        }
    }

    private Destination destination() throws JMSException {
        String address = options.get("address");
        return "topic".equals(options.get("kind")) ? session.createTopic(address) : session.createQueue(address);
    }

    private void send() throws Exception {
        MessageProducer producer = session.createProducer(destination());
        producer.setDeliveryMode(DeliveryMode.PERSISTENT);
        System.out.println("attached");
        for (int sequence = 1; sequence <= count; sequence++) {
            MapMessage message = session.createMapMessage();
            message.setInt("sequence", sequence);
            sendUntilAccepted(producer, message);
            System.out.println("sequence=" + sequence);
            pause(Long.parseLong(options.getOrDefault("pause_ms", "0")));
        }
    }

    /** A released or modified message comes back as an exception: send it again, as an application would. */
    private static void sendUntilAccepted(MessageProducer producer, Message message) throws Exception {
        while (true) {
            try {
                producer.send(message);
                return;
            } catch (JMSException error) {
                if (!isReturned(error)) {
                    throw error;
                }
                System.out.println("again: " + error.getCause());
                pause(RETRY_MS);
            }
        }
    }

    private static boolean isReturned(JMSException error) {
        Throwable cause = error.getCause();
        return cause instanceof ProviderDeliveryReleasedException || cause instanceof ProviderDeliveryModifiedException;
    }

    private static void pause(long ms) throws InterruptedException {
        if (ms > 0) {
            Thread.sleep(ms);
        }
    }

    private void receive() throws Exception {
        CountDownLatch left = new CountDownLatch(count);
        List<MessageConsumer> consumers = new ArrayList<>();
        for (int i = 0; i < Integer.parseInt(options.getOrDefault("consumers", "1")); i++) {
            consumers.add(consumer());
        }
        for (MessageConsumer consumer : consumers) {
            consumer.setMessageListener(
                    message -> {
                        System.out.println("sequence=" + sequenceOf(message));
                        left.countDown();
                    });
        }
        if (options.containsKey("no_local")) {
            sendOwn();
        }
        System.out.println("attached");
        left.await();
        for (MessageConsumer consumer : consumers) {
            consumer.close();
        }
    }

    /** Messages of this connection's, numbered from 1001: its consumer is to get none of them. */
    private void sendOwn() throws JMSException {
        Session own = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageProducer producer = own.createProducer(destination());
        for (int sequence = 1; sequence <= count; sequence++) {
            MapMessage message = own.createMapMessage();
            message.setInt("sequence", 1000 + sequence);
            producer.send(message);
        }
        own.close();
    }

    private MessageConsumer consumer() throws JMSException {
        String subscription = options.get("subscription");
        boolean isNoLocal = options.containsKey("no_local");
        if (subscription == null) {
            return session.createConsumer(destination(), null, isNoLocal);
        }
        Topic topic = (Topic) destination();
        return switch (options.getOrDefault("share", "")) {
            case "durable" -> session.createSharedDurableConsumer(topic, subscription);
            case "volatile" -> session.createSharedConsumer(topic, subscription);
            default -> session.createDurableConsumer(topic, subscription, null, isNoLocal);
        };
    }

    private static String sequenceOf(Message message) {
        try {
            Object body = message instanceof MapMessage map ? map.getObject("sequence") : message.getBody(Object.class);
            return body.toString().replaceAll("\\D", "");
        } catch (JMSException error) {
            throw new IllegalStateException(error);
        }
    }

    private void request() throws Exception {
        TemporaryQueue replies = session.createTemporaryQueue();
        MessageConsumer consumer = session.createConsumer(replies);
        MessageProducer producer = session.createProducer(destination());
        System.out.println("attached");
        for (int sequence = 1; sequence <= count; sequence++) {
            TextMessage request = session.createTextMessage("request " + sequence);
            request.setJMSReplyTo(replies);
            request.setJMSCorrelationID("c" + sequence);
            producer.send(request);
            Message reply = consumer.receive(REPLY_MS);
            if (reply == null || !reply.getJMSCorrelationID().equals("c" + sequence)) {
                throw new IllegalStateException("no reply to request " + sequence + ", but " + reply);
            }
            System.out.println("reply=" + reply.getBody(String.class));
        }
        consumer.close();
        replies.delete();
    }

    private void respond() throws Exception {
        MessageConsumer consumer = session.createConsumer(destination());
        MessageProducer anonymous = session.createProducer(null);
        System.out.println("attached");
        for (int answered = 0; answered < count; answered++) {
            Message request = consumer.receive();
            TextMessage reply = session.createTextMessage(request.getBody(String.class).toUpperCase());
            reply.setJMSCorrelationID(request.getJMSCorrelationID());
            anonymous.send(request.getJMSReplyTo(), reply);
        }
    }
}
