// usage: node calls.cjs NODE_MODULES URL websocket|polling|both: calls of each shape by reference.
"use strict";
const path = require("node:path");
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
  if (event === "stream:item" || event === "bidi:out") {
    call.values.push(payload.value);
    return;
  }
  pending.delete(payload.call_id);
  call.resolve({ event, values: call.values, ...payload });
});

function call(event, target, args, after = () => {}) {
  const call_id = `js-${++number}`;
  return new Promise((resolve) => {
    pending.set(call_id, { values: [], resolve });
    socket.emit(event, encode({ call_id, target, args, kwargs: {} }));
    after(call_id);
  });
}

function print(answer) {
  const line = { event: answer.event };
  if (answer.error) {
    line.type = answer.error.type;
    if (line.type !== "ModuleNotFoundError") line.message = answer.error.message;
  } else if (answer.event === "unary:result") {
    line.value = answer.value;
  } else {
    line.values = answer.values;
  }
  console.log(JSON.stringify(line));
}

async function main() {
  await new Promise((resolve, reject) => {
    socket.on("connect", resolve);
    socket.on("connect_error", reject);
  });
  print(await call("unary", "compat_targets::add", [2, 3]));
  print(await call("stream", "compat_targets::count", [4]));
  print(await call("bidi:start", "compat_targets::running_sum", [], (call_id) => {
    for (const item of [1, 2, 3]) socket.emit("bidi:in", encode({ call_id, item }));
    socket.emit("bidi:end_in", encode({ call_id }));
  }));
  print(await call("unary", "compat_targets::fail", ["lost"]));
  print(await call("unary", "no_such_module::f", []));
  print(await call("unary", "compat_targets::wait_long", ["js"], (call_id) => {
    setTimeout(() => socket.emit("cancel", encode({ call_id })), 100);
  }));
  socket.disconnect();
}

main().then(() => process.exit(0), (error) => {
  console.error(error);
  process.exit(1);
});
setTimeout(() => {
  console.error(`no answer to ${[...pending.keys()]}`);
  process.exit(1);
}, 50000).unref();
