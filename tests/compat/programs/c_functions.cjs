// usage: node c_functions.cjs NODE_MODULES URL websocket|polling|both: calls of C functions in each
// shape: good, failing, cancelled, and one that takes its worker down. Prints a line of JSON for each.
"use strict";
const { call, run, send } = require("./socketio.cjs");

function print(answer) {
  const { event, value, values, error } = answer;
  const line = { event };
  if (event.startsWith("unary")) line.value = value;
  else line.values = values;
  if (error) Object.assign(line, { type: error.type, message: error.message });
  if (error && "returncode" in error) line.returncode = error.returncode;
  console.log(JSON.stringify(line));
}

function unary(name, args, begun) {
  return call("unary", `c:functions::${name}`, args, begun);
}

function stream(name, args, onItem) {
  return call("stream", `c:functions::${name}`, args, undefined, onItem);
}

// Sends the first of `items`, and with each output the next one, then `last`.
function bidi(name, items, last) {
  const rest = [...items];
  const next = (call_id) => {
    if (rest.length > 0) send("bidi:in", { call_id, item: rest.shift() });
    else last(call_id);
  };
  return call("bidi:start", `c:functions::${name}`, [], next, next);
}

// Only the first time: items may still come while the cancellation is on its way.
function cancelOnce() {
  let done = false;
  return (call_id) => {
    if (!done) send("cancel", { call_id });
    done = true;
  };
}

const endInput = (call_id) => send("bidi:end_in", { call_id });

run(async () => {
  print(await unary("add", [2, 3]));
  print(await stream("count", [4]));
  print(await bidi("upper", ["a", "bc"], endInput));

  print(await unary("fail", []));
  print(await stream("count_and_fail", []));
  print(await bidi("upper", ["a", 5], endInput));

  print(await unary("sleep_wait", [], (call_id) => {
    setTimeout(() => send("cancel", { call_id }), 100);
  }));
  const endless = await stream("endless", [], cancelOnce());
  if (endless.values.length === 0) throw new Error("no item before the cancellation");
  print({ ...endless, values: "some" });
  print(await bidi("upper", ["a"], cancelOnce()));

  print(await unary("abort", []));
  print(await stream("count_and_abort", [2]));
  print(await bidi("upper_or_abort", ["a", "abort"], endInput));
  print(await unary("add", [4, 5]));
});
