import jakarta.jms.BytesMessage;
import jakarta.jms.Connection;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import java.net.URI;
import org.apache.qpid.jms.JmsConnectionFactory;

/**
 * Sends to, or receives from, an address of a mesh with Qpid JMS.
 *
 * <p>java -cp 'lib/*' Client.java send|receive [URL [ADDRESS [COUNT]]]
 */
public final class Client {
    private static final long TIMEOUT_MS = 10_000;

    public static void main(String[] args) {
        if (!String.join(" ", args).matches("(send|receive)( \\S+){0,2}( \\d+)?")) {
            System.err.println("usage: java -cp 'lib/*' Client.java send|receive [URL [ADDRESS [COUNT]]]");
            System.exit(2);
        }
        String url = args.length > 1 ? args[1] : "amqp://127.0.0.1:5672";
        String address = args.length > 2 ? args[2] : "orders";
        int count = args.length > 3 ? Integer.parseInt(args[3]) : 10;
        try (Connection connection = connect(URI.create(url))) {
            connection.start();
            // AUTO_ACKNOWLEDGE accepts a message as receive() returns.
            Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
            Queue queue = session.createQueue(address);
            if (args[0].equals("send")) {
                send(session, queue, count);
            } else {
                receive(session, queue, count);
            }
        } catch (JMSException | IllegalStateException error) {
            System.err.println("error: " + error.getMessage());
            System.exit(1);
        }
    }

    private static Connection connect(URI url) throws JMSException {
        String bare = "%s://%s:%d".formatted(url.getScheme(), url.getHost(), url.getPort() < 0 ? 5672 : url.getPort());
        // Credit for one message: the client would fetch a thousand, which other consumers could not get meanwhile.
        JmsConnectionFactory factory = new JmsConnectionFactory(bare + "?jms.prefetchPolicy.all=1&jms.sendTimeout=" + TIMEOUT_MS);
        if (url.getUserInfo() != null) {
            String[] login = url.getUserInfo().split(":", 2);
            factory.setUsername(login[0]);
            factory.setPassword(login.length > 1 ? login[1] : "");
        }
        return factory.createConnection();
    }

    private static void send(Session session, Queue queue, int count) throws JMSException {
        MessageProducer producer = session.createProducer(queue);
        for (int number = 1; number <= count; number++) {
            try {
                // Persistent by default: returns when the message is accepted; any other outcome is an exception.
                producer.send(session.createTextMessage("message " + number));
            } catch (JMSException error) {
                throw new IllegalStateException(
                        "message %d of %d was not accepted: %s".formatted(number, count, error.getMessage()), error);
            }
        }
        System.out.printf("sent %d, all accepted%n", count);
    }

    private static void receive(Session session, Queue queue, int count) throws JMSException {
        MessageConsumer consumer = session.createConsumer(queue);
        for (int number = 1; number <= count; number++) {
            Message message = consumer.receive(TIMEOUT_MS);
            if (message == null) {
                throw new IllegalStateException(
                        "message %d of %d did not come within %d s".formatted(number, count, TIMEOUT_MS / 1000));
            }
            // A client that does not know JMS may send a text as bytes.
            System.out.println(message instanceof BytesMessage ? new String(message.getBody(byte[].class)) : message.getBody(String.class));
        }
        System.out.printf("received %d%n", count);
    }
}
