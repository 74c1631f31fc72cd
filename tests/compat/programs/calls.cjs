// usage: node calls.cjs NODE_MODULES URL websocket|polling|both: calls of each shape by reference.
"use strict";
const { call, run, send } = require("./socketio.cjs");

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

run(async () => {
  print(await call("unary", "compat_targets::add", [2, 3]));
  print(await call("stream", "compat_targets::count", [4]));
  print(await call("bidi:start", "compat_targets::running_sum", [], (call_id) => {
    for (const item of [1, 2, 3]) send("bidi:in", { call_id, item });
    send("bidi:end_in", { call_id });
  }));
  print(await call("unary", "compat_targets::fail", ["lost"]));
  print(await call("unary", "no_such_module::f", []));
  print(await call("unary", "compat_targets::wait_long", ["js"], (call_id) => {
    setTimeout(() => send("cancel", { call_id }), 100);
  }));
});
