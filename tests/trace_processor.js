// Starts Perfetto's trace processor, compiled to WebAssembly, in an empty page. Arguments: trace_processor.wasm in
// base64, the script that Perfetto builds for the worker of a browser, and what is called with "" when it is ready, or
// with an error. After that, ask(bytes in base64) returns what it answers, also in base64: bytes of its RPC stream, which
// perfetto.trace_processor.rpc speaks.
const [binary, script, done] = arguments;
const BUFFER = 32 << 20; // bytes of a request that are handed over at once
const PIECE = 1 << 15; // bytes of an answer that become text at once
const STARTS = "var engineExports = requireEngine();"; // the script starts the 64-bit variant if it can

const bytes = (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));

function text(parts) {
  let found = "";
  for (const part of parts) {
    for (let at = 0; at < part.length; at += PIECE) {
      found += String.fromCharCode(...part.subarray(at, at + PIECE));
    }
  }
  return btoa(found);
}

function serve() {
  const answers = [];
  const reply = (pointer, size) => answers.push(engine.HEAPU8.slice(pointer >>> 0, (pointer >>> 0) + size));
  const types = ["pointer", "number"];
  const buffer = engine.ccall("trace_processor_rpc_init", "pointer", types, [engine.addFunction(reply, "vpi"), BUFFER]) >>> 0;
  window.ask = (request) => {
    const data = bytes(request);
    for (let at = 0; at < data.length; at += BUFFER) {
      const part = data.subarray(at, at + BUFFER);
      engine.HEAPU8.set(part, buffer);
      engine.ccall("trace_processor_on_rpc_request", "void", ["number"], [part.length]);
    }
    return text(answers.splice(0));
  };
  done("");
}

let engine;
try {
  if (!script.includes(STARTS)) {
    throw new Error(`the script has no line "${STARTS}"`);
  }
  window.WorkerGlobalScope = class {};
  window.importScripts = () => {};
  const build = new Function(`${script.replace(STARTS, "return requireTrace_processor().default;")}; return engine;`)();
  engine = build({
    wasmBinary: bytes(binary),
    locateFile: (name) => name,
    print: console.log,
    printErr: console.warn,
    onRuntimeInitialized: () => setTimeout(serve),
  });
} catch (error) {
  done(String(error));
}
