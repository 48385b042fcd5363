// Sends to, or receives from, an address of a mesh with rhea.
//
// node client.js send|receive [URL [ADDRESS [COUNT]]]
'use strict';
const rhea = require('rhea');

const TIMEOUT_MS = 10_000;
const [role, url = 'amqp://127.0.0.1:5672', address = 'orders', countText = '10'] = process.argv.slice(2);
const count = Number(countText);

function fail(text) {
  console.error(`error: ${text}`);
  process.exit(1);
}

const reason = (error) => (error ? `${error.condition}: ${error.description}` : 'no reason given');

function connect() {
  const { hostname, port, username, password } = new URL(url);
  const login = username ? { username: decodeURIComponent(username), password: decodeURIComponent(password) } : {};
  const connection = rhea.connect({ host: hostname, port: Number(port || 5672), ...login, reconnect: false });
  connection.on('disconnected', ({ error }) => fail(`${hostname}:${port || 5672}: ${error ? error.message : 'connection lost'}`));
  connection.on('connection_error', () => fail(`${hostname}:${port || 5672}: ${connection.error.description || connection.error}`));
  for (const link of ['sender', 'receiver']) {
    connection.on(`${link}_error`, (context) => fail(`cannot attach to ${address}: ${reason(context[link].error)}`));
  }
  return connection;
}

function send(connection) {
  const numbers = new Map(); // of deliveries that have no outcome yet
  let sent = 0;
  const sender = connection.open_sender(address);
  sender.on('sendable', () => {
    while (sent < count && sender.sendable()) {
      sent += 1;
      numbers.set(sender.send({ durable: true, body: `message ${sent}` }).id, sent);
    }
  });
  sender.on('accepted', ({ delivery }) => {
    numbers.delete(delivery.id);
    if (sent < count || numbers.size > 0) return;
    console.log(`sent ${count}, all accepted`);
    finish(connection);
  });
  // rhea raises `released` for modified, too.
  for (const outcome of ['released', 'rejected']) {
    sender.on(outcome, ({ delivery }) => fail(`message ${numbers.get(delivery.id)} of ${count} was not accepted but ${outcome}`));
  }
}

function receive(connection) {
  let received = 0;
  // Credit for the wanted messages and no more: other messages are for other consumers.
  const receiver = connection.open_receiver({ source: address, credit_window: 0, autoaccept: false });
  receiver.on('receiver_open', () => receiver.add_credit(count));
  receiver.on('message', ({ message, delivery }) => {
    console.log(message.body);
    delivery.accept();
    if (++received < count) return;
    console.log(`received ${count}`);
    finish(connection);
  });
}

function finish(connection) {
  clearTimeout(deadline);
  connection.removeAllListeners('disconnected');
  connection.close();
}

const roles = { send, receive };
if (!Object.hasOwn(roles, role) || !Number.isInteger(count) || process.argv.length > 6) {
  console.error('usage: node client.js send|receive [URL [ADDRESS [COUNT]]]');
  process.exit(2);
}
const deadline = setTimeout(() => fail(`${role} of ${count} messages took longer than ${TIMEOUT_MS / 1000} s`), TIMEOUT_MS);
roles[role](connect());
