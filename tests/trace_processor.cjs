// Runs Perfetto's trace processor, compiled to WebAssembly, on standard input and output: bytes of its RPC stream, which
// perfetto.trace_processor.rpc speaks. node trace_processor.cjs FOLDER, where FOLDER has trace_processor.wasm and the
// script that Perfetto builds for the worker of a browser; that is told here that this is one.
"use strict";

const fs = require("node:fs");
const path = require("node:path");
const vm = require("node:vm");

const BUFFER = 32 << 20; // bytes of a request that are handed over at once
const STARTS = "var engineExports = requireEngine();"; // the script starts the 64-bit variant if it can

const folder = process.argv[2];
const binary = fs.readFileSync(path.join(folder, "trace_processor.wasm"));
const script = fs.readFileSync(path.join(folder, "engine_bundle.node.js"), "utf8");
if (!script.includes(STARTS)) {
  throw new Error(`engine_bundle.node.js has no line "${STARTS}"`);
}

globalThis.self = globalThis;
globalThis.location = { href: "worker.js" };
globalThis.WorkerGlobalScope = class {};
globalThis.importScripts = () => {};
const build = vm.runInThisContext(`${script.replace(STARTS, "return requireTrace_processor().default;")}; engine`);

function reply(pointer, size) {
  let left = engine.HEAPU8.slice(pointer >>> 0, (pointer >>> 0) + size);
  while (left.length > 0) {
    try {
      left = left.subarray(fs.writeSync(1, left));
    } catch (error) {
      if (error.code !== "EAGAIN") {
        throw error;
      }
    }
  }
}

const engine = build({
  wasmBinary: binary,
  locateFile: (name) => name,
  print: console.error,
  printErr: console.error,
  onRuntimeInitialized: () => setImmediate(serve),
});

function serve() {
  const replies = engine.addFunction(reply, "vpi");
  const types = ["pointer", "number"];
  const buffer = engine.ccall("trace_processor_rpc_init", "pointer", types, [replies, BUFFER]) >>> 0;
  process.stdin.on("data", (data) => {
    for (let at = 0; at < data.length; at += BUFFER) {
      const part = data.subarray(at, at + BUFFER);
      engine.HEAPU8.set(part, buffer);
      engine.ccall("trace_processor_on_rpc_request", "void", ["number"], [part.length]);
    }
  });
  process.stdin.on("end", () => process.exit(0));
}
