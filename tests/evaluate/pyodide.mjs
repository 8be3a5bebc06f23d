// Stands in for Pyodide in the tests of the live page: what it is asked to run, the server of the test runs in CPython.
const ask = (name, ...args) => {
  const request = new XMLHttpRequest();
  request.open("POST", "/python", false); // a call of Python returns when it is done
  request.send(JSON.stringify([name, ...args]));
  if (request.status !== 200) throw Object.assign(new Error(request.responseText), { name: "PythonError" });
  return JSON.parse(request.responseText);
};

const live = {
  Demo(...args) {
    ask("Demo", ...args);
    return { play: () => ask("play"), set drift(value) { ask("drift", value); } };
  },
  run: (code) => ask("run", code),
};

export async function loadPyodide() {
  return {
    loadPackage: async (names) => ask("packages", names),
    FS: { writeFile: (name, text) => ask("file", name, text) },
    pyimport: (name) => ({ live, micropip: { install: async (wheel) => ask("install", wheel) } })[name],
  };
}
