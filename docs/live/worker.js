// Runs orcast beside the page, so that the page answers while Python plays.
//
// The page says what to do ({ task: "load" | "reset" | "start" | "pause" | "drift" | "run", ... }), the worker says what
// came of it ({ kind: "loading" | "ready" | "rows" | "paused" | "output" | "failed", ... }). It is a module, since newer
// versions of Pyodide start in no other worker.
//
// The package `pyodide` of npm has no numpy and no scipy. It is enough to see Python start here and micropip install
// orcast: put the wheels of narwhals, micropip and two empty ones named numpy and scipy beside it, with
// their hashes in pyodide-lock.json. The tests go without: tests/evaluate/pyodide.mjs hands each call to CPython.

const PACE = 50; // milliseconds a round takes at least, so that the eye can follow

let live; // docs/live/live.py
let demo;
let game = 0; // rounds of a game that was reset are on their way when the next one begins: each says its game
let playing = false;

const say = (kind, more) => postMessage({ kind, ...more });

async function load({ base, wheel, module }) {
  say("loading", { text: "Loading Python …" });
  const { loadPyodide } = await import(`${base}pyodide.mjs`);
  const pyodide = await loadPyodide({ indexURL: base });
  say("loading", { text: "Loading numpy and scipy …" });
  // all that orcast needs, from Pyodide's own files: nothing is left that micropip would have to ask an index for
  await pyodide.loadPackage(["numpy", "scipy", "narwhals", "micropip"], { messageCallback: () => {} });
  say("loading", { text: "Loading orcast …" });
  await pyodide.pyimport("micropip").install(wheel);
  pyodide.FS.writeFile("live.py", await (await fetch(module)).text());
  live = pyodide.pyimport("live");
  say("ready");
}

function reset(message) {
  demo?.destroy?.();
  game = message.game;
  demo = live.Demo(message.situation, message.drift, message.seed);
}

function play() {
  if (!playing) return;
  const start = performance.now();
  say("rows", { game, rows: JSON.parse(demo.play()) });
  setTimeout(() => attempt(play), Math.max(0, PACE - (performance.now() - start))); // messages come in between
}

function start() {
  if (playing) return;
  playing = true;
  play();
}

const tasks = {
  load,
  reset,
  start,
  pause: () => {
    playing = false;
    say("paused");
  },
  drift: ({ value }) => { demo.drift = value; },
  run: ({ code }) => say("output", { text: live.run(code) }),
};

async function attempt(task, message) {
  try {
    await task(message);
  } catch (error) {
    playing = false;
    const lines = String(error.message ?? error).trim().split("\n");
    say("failed", { text: lines.at(error.name === "PythonError" ? -1 : 0) }); // a traceback ends with what went wrong
  }
}

onmessage = ({ data }) => attempt(tasks[data.task], data);
