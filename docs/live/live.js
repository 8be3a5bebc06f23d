// The page of the live demo: its controls, its pictures, and what it says. Python runs in worker.js.
(() => {
  const here = new URL(".", document.currentScript.src);
  const at = (name) => document.getElementById(`live-${name}`);
  const base = new URL(at("demo").dataset.pyodide, document.baseURI).href.replace(/\/?$/, "/");
  const controls = at("controls");
  const still = matchMedia("(prefers-reduced-motion: reduce)");

  const SHOWN = 96; // rounds in a picture: four days
  const STRIDE = 50; // with reduced motion, one picture for so many rounds
  const AHEAD = 24; // rounds between two labels of the axis
  const HEIGHT = 190;
  const MARGIN = { left: 34, right: 8, top: 8, bottom: 22 };

  let worker;
  let state = "off"; // off, loading, paused, playing
  let waiting = null; // what to do once Python is there
  let running = false; // whether the cell runs
  let game = 0;
  let rows = [];
  let drawn = false; // whether a picture is on its way

  // --- pictures ---------------------------------------------------------------------------------

  const create = (name, attributes, text) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== undefined) element.textContent = text;
    return element;
  };

  function fan(svg, side, shown) {
    const width = svg.clientWidth;
    if (!width) return;
    const x = (round) =>
      MARGIN.left + ((round - shown[0].round) / (SHOWN - 1)) * (width - MARGIN.left - MARGIN.right);
    const y = (value) => MARGIN.top + (1 - value / 100) * (HEIGHT - MARGIN.top - MARGIN.bottom);
    const line = (level) => shown.map((row) => `${x(row.round).toFixed(1)},${y(row[side][level]).toFixed(1)}`);
    const area = (low, high) => `M${[...line(low), ...line(high).reverse()].join("L")}Z`;
    const parts = [];
    for (const value of [0, 50, 100]) {
      parts.push(create("line", { class: "grid", x1: MARGIN.left, x2: width - MARGIN.right, y1: y(value), y2: y(value) }));
      parts.push(create("text", { class: "up", x: MARGIN.left - 6, y: y(value) + 4 }, value));
    }
    const last = shown.at(-1).round;
    for (let round = Math.ceil(shown[0].round / AHEAD) * AHEAD; round <= last; round += AHEAD) {
      parts.push(create("text", { class: "across", x: Math.min(x(round), width - 14), y: HEIGHT - 5 }, round));
    }
    parts.push(create("path", { class: "band", d: area(0, 4) }), create("path", { class: "half", d: area(1, 3) }));
    parts.push(create("path", { class: "middle", d: `M${line(2).join("L")}` }));
    for (const row of shown) {
      const [cx, cy] = [x(row.round), y(row.y)];
      if (inside(row, side)) parts.push(create("circle", { class: "dot", cx, cy, r: 2 }));
      else parts.push(create("path", { class: "miss", d: `M${cx - 3},${cy - 3}l6,6m0,-6l-6,6` }));
    }
    svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    svg.setAttribute("height", HEIGHT);
    svg.setAttribute("aria-label", described(side, shown));
    svg.replaceChildren(...parts);
  }

  const inside = (row, side) => row[side][0] <= row.y && row.y <= row[side].at(-1);

  function described(side, shown) {
    const hit = shown.filter((row) => inside(row, side)).length;
    const whose = side === "before" ? "The expert's forecasts" : "Recalibrated forecasts";
    const last = shown.at(-1);
    return (
      `${whose} of rounds ${shown[0].round} to ${last.round}, as a fan: the 90% band holds ${hit} of ` +
      `${shown.length} outcomes; the last one goes from ${last[side][0].toFixed(0)} to ${last[side].at(-1).toFixed(0)}.`
    );
  }

  // --- numbers and words ------------------------------------------------------------------------

  const percent = (share) => `${(100 * share).toFixed(0)}%`;

  function show() {
    drawn = false;
    if (!rows.length) return blank();
    const last = rows.at(-1);
    for (const side of ["before", "after"]) {
      fan(at(side), side, rows);
      const covered = last[`covered_${side}`];
      at(`all-${side}`).textContent = percent(covered.all);
      at(`recent-${side}`).textContent = percent(covered.recent);
      at(`said-${side}`).textContent = `(90% band: ${percent(covered.all)} of the outcomes)`;
    }
    at("certificate").textContent = last.holds
      ? `Round ${last.round} holds: no outcome could have broken the promise ` +
        `(worst case ${last.worst_next.toFixed(1)}, allowed ${last.allowed.toFixed(1)}). ` +
        `It held in ${percent(last.held)} of the rounds.`
      : `Round ${last.round} does not hold. It held in ${percent(last.held)} of the rounds.`;
    at("promise").textContent =
      `After ${last.round} rounds: miscalibration ${last.miscalibration.toFixed(4)}, ` +
      `${last.miscalibration <= last.promised ? "at most" : "more than"} the promised ${last.promised.toFixed(4)}.`;
  }

  function blank() {
    for (const side of ["before", "after"]) {
      at(side).replaceChildren();
      at(side).setAttribute("aria-label", "No round was played yet.");
      for (const name of ["all", "recent"]) at(`${name}-${side}`).textContent = "–";
      at(`said-${side}`).textContent = "";
    }
    at("certificate").textContent = at("promise").textContent = "No round was played yet.";
  }

  function draw() {
    if (drawn) return;
    drawn = true;
    requestAnimationFrame(show);
  }

  const say = (text) => { at("status").textContent = text; };

  function become(next) {
    state = next;
    at("start").textContent = state === "playing" ? "Pause" : "Start";
    at("start").disabled = state === "loading";
    at("reset").disabled = state === "loading" || state === "off";
    at("run").textContent = running ? "Stop" : "Run";
    at("run").disabled = state === "loading";
    at("drift").disabled = controls.elements.situation.value !== "drift";
  }

  // --- the worker -------------------------------------------------------------------------------

  function load(then) {
    waiting = then;
    if (state === "loading") return;
    become("loading");
    worker = new Worker(new URL("worker.js", here), { type: "module" });
    worker.onmessage = ({ data }) => heard[data.kind](data);
    worker.onerror = (event) => heard.failed({ text: event.message || "the worker did not start" });
    const wheel = new URL(window.orcastRecorded.wheel, here).href;
    worker.postMessage({ task: "load", base, wheel, module: new URL("live.py", here).href });
  }

  const heard = {
    loading: ({ text }) => say(`${text} (the first time this takes a while)`),
    ready() {
      become("paused");
      reset();
      waiting();
    },
    rows(message) {
      if (message.game !== game) return;
      rows = [...rows, ...message.rows].slice(-SHOWN);
      if (!still.matches || rows.at(-1).round % STRIDE === 0) draw();
    },
    paused() {
      say(rows.length ? `Paused after round ${rows.at(-1).round}.` : "Paused.");
      draw();
    },
    output({ text }) {
      running = false;
      at("output").textContent = text || "(nothing was printed)";
      become(state);
    },
    failed({ text }) {
      running = false;
      say(`This did not work: ${text}`);
      if (state !== "loading") return become("paused");
      worker.terminate();
      become("off");
    },
  };

  function reset() {
    game += 1;
    rows = [];
    const { situation, drift } = controls.elements;
    worker.postMessage({ task: "reset", game, situation: situation.value, drift: Number(drift.value), seed: game });
    draw();
  }

  function start() {
    become("playing");
    say(still.matches ? `Playing; the pictures change every ${STRIDE} rounds.` : "Playing.");
    worker.postMessage({ task: "start" });
  }

  function pause() {
    worker.postMessage({ task: "pause" });
    become("paused");
  }

  function run() {
    running = true;
    become(state);
    at("output").textContent = "Running …";
    worker.postMessage({ task: "run", code: at("code").value });
  }

  function stop() {
    // Python in a worker hears nothing while it runs: only its end ends it
    worker.terminate();
    running = false;
    at("output").textContent = "Stopped.";
    become("off");
    load(() => say("Ready."));
  }

  const ready = (task) => (state === "off" ? load(task) : task());

  function listen() {
    controls.addEventListener("submit", (event) => {
      event.preventDefault();
      if (state === "playing") pause();
      else ready(start);
    });
    at("reset").addEventListener("click", () => {
      reset();
      if (state !== "playing") say("A new game.");
    });
    controls.addEventListener("change", (event) => {
      if (event.target.name !== "situation") return;
      become(state);
      if (state === "playing" || state === "paused") reset();
    });
    at("drift").addEventListener("input", () => {
      at("drift-value").textContent = at("drift").value;
      if (state === "playing" || state === "paused") {
        worker.postMessage({ task: "drift", value: Number(at("drift").value) });
      }
    });
    at("run").addEventListener("click", () => (running ? stop() : ready(run)));
    at("code").addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      if (!at("run").disabled && !running) ready(run);
    });
    document.addEventListener("visibilitychange", () => {
      if (document.hidden && state === "playing") pause();
    });
    new ResizeObserver(draw).observe(at("before"));
  }

  // --- what is there ----------------------------------------------------------------------------

  const script = (source) =>
    new Promise((done) => {
      const element = document.createElement("script");
      element.src = source;
      element.onload = element.onerror = done;
      document.head.append(element);
    });

  /** Why Python cannot run here, in one sentence; nothing if it can. */
  async function missing() {
    if (location.protocol === "file:") {
      return "The demo does not run from a file: serve the folder of the site, for example with python -m http.server, and open it there.";
    }
    const needed = [`${base}pyodide.mjs`, new URL(window.orcastRecorded?.wheel ?? "orcast.whl", here).href];
    for (const url of needed) {
      const answer = await fetch(url, { method: "HEAD" }).catch(() => null);
      if (!answer?.ok) {
        return url.endsWith(".whl")
          ? "The demo does not run here because this site has no wheel of orcast: build it with make docs."
          : "The demo does not run here because this site has no copy of Pyodide: build it with make docs PYODIDE=folder, the folder of an unpacked Pyodide distribution.";
      }
    }
    return "";
  }

  async function begin() {
    await script(new URL("recorded.js", here));
    const all = window.orcastRecorded?.rows ?? [];
    const recorded = all.length ? `Shown: the end of a recorded run of ${all.length} rounds, with drift.` : "";
    rows = all.slice(-SHOWN);
    listen();
    draw();
    const why = await missing();
    if (why) {
      at("missing").textContent = why;
      at("missing").hidden = false;
      say(recorded);
      return;
    }
    controls.hidden = at("runner").hidden = false;
    become("off");
    say(`${recorded} Start loads Python and plays a new one.`);
  }

  begin();
})();
