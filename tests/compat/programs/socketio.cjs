// What the programs here share: a connection by socket.io-client from npm, and calls over it.
"use strict";
const path = require("node:path");

// NODE_MODULES URL websocket|polling|both of the command line.
const [modules, url, transport] = process.argv.slice(2);
const { io } = require(path.join(modules, "socket.io-client"));
const { encode, decode } = require(path.join(modules, "@msgpack/msgpack"));

const transports = transport === "both" ? ["polling", "websocket"] : [transport];
const socket = io(url, { transports, reconnection: false });
const pending = new Map();
let number = 0;

// Every event carries one binary attachment: a msgpack map.
socket.onAny((event, data) => {
  const payload = decode(data);
  const call = pending.get(payload.call_id);
  if (!call) throw new Error(`${event} for ${payload.call_id}, which has ended`);
  if (event === "stream:item" || event === "bidi:out") {
    call.values.push(payload.value);
    call.onItem(payload.call_id);
    return;
  }
  pending.delete(payload.call_id);
  call.resolve({ event, values: call.values, ...payload });
});

function send(event, payload) {
  socket.emit(event, encode(payload));
}

// `begun` is called with the call's id once it is sent, `onItem` after each item.
function call(event, target, args, begun = () => {}, onItem = () => {}) {
  const call_id = `js-${++number}`;
  return new Promise((resolve) => {
    pending.set(call_id, { values: [], onItem, resolve });
    send(event, { call_id, target, args, kwargs: {} });
    begun(call_id);
  });
}

// Runs the program once it is connected; a call that stays without an answer fails it.
function run(main) {
  setTimeout(() => {
    console.error(`no answer to ${[...pending.keys()]}`);
    process.exit(1);
  }, 150000).unref();
  new Promise((resolve, reject) => {
    socket.on("connect", resolve);
    socket.on("connect_error", reject);
  }).then(main).then(() => {
    socket.disconnect();
    process.exit(0);
  }).catch((error) => {
    console.error(error);
    process.exit(1);
  });
}

module.exports = { call, run, send };
