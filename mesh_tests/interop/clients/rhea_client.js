// rhea as a test client. Arguments and output are those that client.py describes.
'use strict';
const rhea = require('rhea');

const options = Object.fromEntries(process.argv.slice(2).map((arg) => arg.split(/=(.*)/s).slice(0, 2)));
const count = Number(options.count);
const pauseMs = Number(options.pause_ms || 0);
const say = (text) => process.stdout.write(text + '\n');

function fail(text) {
  say('failed: ' + text);
  process.exit(1);
}

const reason = (error) => `${error.condition}: ${error.description}`;

function connect() {
  const urls = options.urls.split(',').map((text) => new URL(text));
  let attempts = 0;
  const container = rhea.create_container({ id: options.container_id || rhea.generate_uuid() });
  container.on('connection_error', (context) => say('connection error: ' + context.connection.error));
  container.on('sender_error', (context) => fail(reason(context.sender.error)));
  container.on('receiver_error', (context) => fail(reason(context.receiver.error)));
  container.on('rejected', (context) => fail('rejected: ' + reason(context.delivery.remote_state.error)));
  const connection = container.connect({
    connection_details: () => {
      const url = urls[attempts++ % urls.length];
      return { host: url.hostname, port: Number(url.port) };
    },
    ...(urls[0].username ? { username: urls[0].username, password: urls[0].password } : {}),
    reconnect: urls.length > 1,
    initial_reconnect_delay: 50,
    max_reconnect_delay: 200,
  });
  connection.on('disconnected', (context) => {
    if (urls.length === 1) fail('disconnected: ' + (context.error || 'no reason given'));
  });
  return connection;
}

function finish(connection) {
  connection.on('connection_close', () => say('done'));
  connection.close();
}

function send(connection) {
  const waiting = Array.from({ length: count }, (_, index) => index + 1);
  const unsettled = new Map();
  let confirmed = 0;
  let pause;
  const sender = connection.open_sender({ target: options.address });

  function sendNext() {
    // What is given to rhea while it has no connection is forgotten when it has one again.
    while (connection.is_open() && sender.sendable() && waiting.length && !pause) {
      const sequence = waiting.shift();
      unsettled.set(sender.send({ message_id: sequence, durable: true, body: { sequence } }), sequence);
      if (pauseMs) pause = setTimeout(goOn, pauseMs);
    }
  }

  function goOn() {
    pause = undefined;
    sendNext();
  }

  sender.on('sender_open', () => say('attached'));
  sender.on('sendable', sendNext);
  // Also raised for what came back modified.
  sender.on('released', (context) => {
    waiting.push(unsettled.get(context.delivery));
    unsettled.delete(context.delivery);
    sendNext();
  });
  sender.on('accepted', (context) => {
    say('sequence=' + unsettled.get(context.delivery));
    unsettled.delete(context.delivery);
    if (++confirmed === count) finish(connection);
  });
  connection.on('disconnected', () => {
    waiting.push(...unsettled.values());
    unsettled.clear();
  });
}

function receive(connection) {
  let received = 0;
  const durable = { name: options.subscription, durable: 2, expiry_policy: 'never' };
  const source = { address: options.address, ...(options.subscription ? durable : {}) };
  // Credit for what is still wanted and no more: rhea accepts whatever comes, and then it is nobody else's.
  const receiver = connection.open_receiver({ name: options.subscription, source, credit_window: 0 });
  receiver.on('receiver_open', () => {
    say('attached');
    receiver.add_credit(count - received);
  });
  receiver.on('message', (context) => {
    say('sequence=' + context.message.body.sequence);
    if (++received < count) return;
    setImmediate(() => {
      if (options.subscription) receiver.detach();
      finish(connection);
    });
  });
}

function request(connection) {
  let next = 1;
  const sender = connection.open_sender(options.address);
  const replies = connection.open_receiver({ source: { dynamic: true } });
  const ask = () =>
    sender.send({ reply_to: replies.source.address, correlation_id: 'c' + next, body: 'request ' + next });
  replies.on('receiver_open', () => {
    say('attached');
    if (sender.sendable()) ask();
    else sender.once('sendable', ask);
  });
  replies.on('message', (context) => {
    if (context.message.correlation_id !== 'c' + next) fail('reply out of turn: ' + context.message.correlation_id);
    say('reply=' + context.message.body);
    if (next++ === count) finish(connection);
    else ask();
  });
}

function respond(connection) {
  let answered = 0;
  const requests = connection.open_receiver(options.address);
  const anonymous = connection.open_sender({ target: {} });
  requests.on('receiver_open', () => say('attached'));
  requests.on('message', (context) => {
    const { reply_to: to, correlation_id, body } = context.message;
    anonymous.send({ to, correlation_id, body: body.toUpperCase() });
  });
  anonymous.on('accepted', () => {
    if (++answered === count) finish(connection);
  });
}

({ send, receive, request, respond })[options.mode](connect());
