import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { systemClock } from "@coracle/operator/client";
import type { ObjectHistory } from "@coracle/operator/core";
import { UsageError } from "../../dev/cli/command.ts";
import { linkFileOf } from "../../dev/cli/serving.ts";
import { askProbes, probesUrl, whyCommand } from "../../dev/cli/why_command.ts";
import { temporaryFolder, writeText } from "../support/temporary_folder.ts";
import { probeSettings } from "../support/probe_settings.ts";
import { ProbeServer } from "../../core/operator/probe_server.ts";

// deno-lint-ignore no-control-regex -- none may be left
const CONTROL_REGEXP = /[\x00-\x09\x0b-\x1f\x7f-\x9f]/;

const HISTORY: ObjectHistory = {
  controller: "webpage",
  object: "default/web",
  known: true,
  running: false,
  attempt: 1,
  exhausted: false,
  runs: [{
    at: "2026-01-01T00:00:00.000Z",
    cause: "modified (2 events)",
    step: "reconcile",
    attempt: 0,
    outcome: "failure",
    waited: 0.4,
    duration: 12.3,
    writes: ["apply v1 ConfigMap default/web"],
    error: "Error: Not yet",
    next: "retry in 2s",
  }],
};

/** Operator file with probes. */
function operatorFile(probes: string): string {
  const library = new URL("../../mod.ts", import.meta.url);
  return writeText(
    temporaryFolder(),
    "op.mjs",
    `import { Operator } from "${library}";
export default new Operator({ probes: ${probes} });
`,
  );
}

async function why(
  object: string,
  options: {
    debug?: boolean;
    histories?: readonly ObjectHistory[];
    /** Takes the port from the file of an operator. */
    byFile?: boolean;
  } = {},
): Promise<string> {
  const { debug = true, histories = [HISTORY] } = options;
  const asked: string[] = [];
  const probes = new ProbeServer({
    clock: systemClock,
    state: () => "started",
    health: () => ({ ready: true }),
    metrics: () => "",
    inspect: () => ({}),
    failed() {},
    why(name) {
      asked.push(name);
      return histories;
    },
  });
  await probes.start(
    probeSettings({ port: 0, host: "127.0.0.1", debug }),
  );
  let printed = "";
  try {
    await whyCommand.run({
      flags: options.byFile ? {} : { url: `http://127.0.0.1:${probes.port}` },
      operands: options.byFile
        ? [operatorFile(`{ port: ${probes.port}, debug: true }`), object]
        : [object],
      terminal: {
        out: (text) => printed += text,
        say() {},
        draw() {},
        colors: false,
        interrupts: () => new AbortController().signal,
      },
    });
  } finally {
    await probes.stop();
  }
  assert.deepEqual(asked, [object]);
  return printed;
}

test("coracle why prints the last runs of an object", async () => {
  assert.equal(
    await why("default/web"),
    `webpage default/web (retry 1)
  2026-01-01T00:00:00.000Z  reconcile: failure in 12 ms after waiting 0 ms
    because  modified (2 events)
    wrote    apply v1 ConfigMap default/web
    failed   Error: Not yet
    next     retry in 2s
`,
  );
});

test("coracle why asks below the path of its URL, as that of kubectl proxy", async () => {
  const asked: (string | undefined)[] = [];
  const server = createServer(({ url }, response) => {
    asked.push(url);
    response.end("[]");
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  try {
    for (const path of ["", "/", "/proxy", "/proxy/"]) {
      await askProbes(`http://127.0.0.1:${port}${path}`, "a/b");
    }
  } finally {
    server.close();
  }
  assert.deepEqual(asked, [
    "/debug/why?object=a%2Fb",
    "/debug/why?object=a%2Fb",
    "/proxy/debug/why?object=a%2Fb",
    "/proxy/debug/why?object=a%2Fb",
  ]);
});

test("coracle why takes the port of the probes from the file of an operator", async () => {
  assert.match(await why("default/web", { byFile: true }), /^webpage default/);
  await assert.rejects(
    whyOf(operatorFile("{ port: 8080 }"), "default/web"),
    /Cannot ask the operator of .*op\.mjs: it must be created with probes/,
  );
});

test("coracle why asks for the namespace of an unknown object", async () => {
  await assert.rejects(
    why("ann", { histories: [] }),
    /no controller of the operator knows it; write NAMESPACE\/NAME .*default\/ann$/,
  );
});

test("coracle why says what makes an object unknown", async () => {
  await assert.rejects(
    why("default/ann", { histories: [] }),
    /knows it: it must exist, .* and match its selectors and namespaces$/,
  );
});

test("coracle why escapes control characters that users wrote", async () => {
  const [run] = HISTORY.runs;
  const text = await why("default/web", {
    histories: [{
      ...HISTORY,
      controller: "web\x9b2Kpage",
      runs: [{
        ...run as ObjectHistory["runs"][0],
        cause: "\x1b]0;title\x07",
        writes: ["patch \x1b[2J"],
        error: "Error: a\r\n  wrote nothing",
      }],
    }],
  });
  assert.doesNotMatch(text, CONTROL_REGEXP);
  assert.match(text, /^web\\u009b2Kpage /);
  assert.match(text, /because {2}\\u001b\]0;title\\u0007\n/);
  assert.match(text, /wrote {4}patch \\u001b\[2J\n/);
  assert.match(text, /failed {3}Error: a\\u000d\\n {2}wrote nothing\n/);
});

test("coracle why shows a run that ignores its signal", async () => {
  const aborted = { because: "timeout" as const, ago: 35_400 };
  const history = {
    ...HISTORY,
    running: true,
    runningFor: 65_400,
    aborted,
    attempt: 0,
    runs: [],
  };
  assert.equal(
    await why("default/web", { histories: [history] }),
    "webpage default/web (running for 65 s, aborted 35 s ago because of timeout)\n",
  );
});

test("coracle why says that finalizers of others keep a deleted object", async () => {
  const [{ error: _error, next: _next, ...run }] = HISTORY.runs as [
    ObjectHistory["runs"][0],
  ];
  const runs = [{ ...run, step: "nothing", outcome: "success", writes: [] }];
  assert.match(
    await why("default/web", {
      histories: [{ ...HISTORY, runs } as ObjectHistory],
    }),
    /\n {4}waits {4}for finalizers of others, as it is being deleted\n$/,
  );
});

test("coracle why names the missing option", async () => {
  await assert.rejects(why("default/web", { debug: false }), /debug: true/);
  await assert.rejects(why("default/web", { histories: [] }), /no controller/);
  await assert.rejects(why("a/b/c"), {
    name: "UsageError",
    message: /"namespace\/name": received "a\/b\/c"/,
  });
});

/** Asks where there is no operator. */
async function whyAt(url: string): Promise<unknown> {
  return await whyOf({ url }, "default/web");
}

async function whyOf(
  given: string | { readonly url?: string },
  object: string,
): Promise<unknown> {
  return await whyCommand.run({
    flags: typeof given === "string" ? {} : given,
    operands: typeof given === "string" ? [given, object] : [object],
    terminal: {
      out() {},
      say() {},
      draw() {},
      colors: false,
      interrupts: () => new AbortController().signal,
    },
  });
}

test("coracle why explains why no operator answered", async () => {
  await assert.rejects(whyAt("http://127.0.0.1:1"), (error) => {
    assert.ok(error instanceof UsageError);
    assert.match(error.message, /created with probes: \{.*debug: true \}/);
    assert.doesNotMatch(error.message, /received fetch failed/);
    return true;
  });
});

test("coracle why rejects invalid URLs and answers of other servers", async () => {
  for (const url of ["foo", "localhost:8080", "ftp://host"]) {
    await assert.rejects(whyAt(url), (error) => {
      assert.ok(error instanceof UsageError);
      assert.match(error.message, /--url must be a URL such as http/);
      return true;
    });
  }
  const server = createServer((_, response) => response.end("<html>"));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  try {
    const { port } = server.address() as AddressInfo;
    await assert.rejects(
      whyAt(`http://127.0.0.1:${port}`),
      /debug: true \}: received status 200 and no runs/,
    );
  } finally {
    server.close();
    server.closeAllConnections();
  }
});

test("coracle why shows each run, write and controller", async () => {
  const [run] = HISTORY.runs as [ObjectHistory["runs"][0]];
  const full = {
    ...run,
    attempt: 1,
    waited: 2.6,
    writes: ["create v1 Secret a", "delete v1 Pod b"],
    workflow: "secret ready, pod waiting",
  };
  const first = {
    ...HISTORY,
    known: false,
    exhausted: true,
    runs: [run, full],
  };
  const second = { ...HISTORY, controller: "backup", attempt: 0, runs: [] };
  const printed = await why("default/web", { histories: [first, second] });
  assert.match(
    printed,
    /^webpage default\/web \(deleted, retries exhausted\)\n/,
  );
  assert.match(printed, /^backup default\/web\n$/m);
  assert.equal(printed.match(/because/g)?.length, 2);
  assert.match(printed, /events\)\n[^]*events\), retry 1\n/);
  assert(
    printed.includes(`reconcile: failure in 12 ms after waiting 3 ms
    because  modified (2 events), retry 1
    wrote    create v1 Secret a
    wrote    delete v1 Pod b
    workflow secret ready, pod waiting
`),
    printed,
  );
});

test("probesUrl takes the probes of the export, if they can be asked", async () => {
  const library = new URL("../../mod.ts", import.meta.url);
  // A module is evaluated once only.
  const file = () =>
    writeText(
      temporaryFolder(),
      "op.mjs",
      `import { Operator } from "${library}";
const make = (probes) => new Operator({ probes });
export const closed = make({ port: 8081 });
export const any = make({ port: 0, debug: true });
export const open = make({ port: 8082, debug: true });
`,
    );
  const urlOf = (name: string) => probesUrl("why", { export: name }, file());
  assert.equal(await urlOf("open"), "http://127.0.0.1:8082");
  for (const name of ["closed", "any"]) {
    await assert.rejects(urlOf(name), /it must be created with probes/);
  }
  assert.equal(
    await probesUrl("why", { url: "https://host:1" }, undefined),
    "https://host:1",
  );
  assert.equal(await probesUrl("why", {}, undefined), "http://127.0.0.1:8080");
});

test("askProbes asks for the state, or for the runs of an object", async () => {
  const asked: (string | undefined)[] = [];
  const server = createServer(({ url }, response) => {
    asked.push(url);
    response.end(url === "/debug/state" ? "{}" : "[]");
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  try {
    assert.deepEqual(await askProbes(url), {});
    assert.deepEqual(await askProbes(`${url}/`, "default/a b"), []);
    assert.deepEqual(asked, [
      "/debug/state",
      "/debug/why?object=default%2Fa+b",
    ]);
  } finally {
    server.close();
    server.closeAllConnections();
  }
  const refused = await askProbes("http://127.0.0.1:1")
    .catch((error: Error) => error.message);
  assert.match(String(refused), /KUBECONFIG is set: (?!fetch failed)/);
});

/** Reason that is said when a request fails with an error. */
async function reasonFor(error: unknown): Promise<string> {
  const { fetch } = globalThis;
  Object.assign(globalThis, { fetch: () => Promise.reject(error) });
  try {
    await askProbes("http://127.0.0.1:1");
  } catch (error) {
    return (error as Error).message.split("is set: ")[1] ?? "";
  } finally {
    Object.assign(globalThis, { fetch });
  }
  return "";
}

test("askProbes says the cause of a failed request, by its message or its code", async () => {
  const failed = (cause: unknown) => new TypeError("fetch failed", { cause });
  const cause = (message: string) =>
    Object.assign(new Error(message), { code: "ECONNREFUSED" });
  assert.equal(await reasonFor(failed(cause("no server"))), "no server");
  assert.equal(await reasonFor(failed(cause(""))), "ECONNREFUSED");
  assert.equal(await reasonFor(failed(new Error(""))), "fetch failed");
  assert.equal(await reasonFor(failed("text")), "fetch failed");
  assert.equal(await reasonFor("text"), "text");
});

test("askProbes refuses an answer of another form", async () => {
  let answer = "[]";
  const server = createServer((_, response) => response.end(answer))
    .listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}`;
  try {
    await assert.rejects(askProbes(url), /status 200 and no state$/);
    answer = "{}";
    await assert.rejects(askProbes(url, "a/b"), /status 200 and no runs$/);
  } finally {
    server.close();
    server.closeAllConnections();
  }
});

test("coracle why --url asks there, and not what coracle dev runs", async () => {
  const kubeconfig = join(temporaryFolder(), "kubeconfig");
  writeFileSync(linkFileOf(kubeconfig), "no link");
  const { KUBECONFIG } = process.env;
  process.env["KUBECONFIG"] = kubeconfig;
  try {
    assert.match(await why("default/web"), /^webpage default\/web/);
    await assert.rejects(whyOf("op.mjs", "default/web"), SyntaxError);
  } finally {
    if (KUBECONFIG === undefined) delete process.env["KUBECONFIG"];
    else process.env["KUBECONFIG"] = KUBECONFIG;
  }
});

test("coracle why asks the default address, with a time limit", async () => {
  const { fetch } = globalThis;
  const asked: unknown[] = [];
  let signal: AbortSignal | null | undefined;
  Object.assign(globalThis, {
    fetch(url: URL, init?: RequestInit) {
      asked.push(url.href);
      signal = init?.signal;
      return Promise.resolve(Response.json([HISTORY]));
    },
  });
  try {
    await whyOf({}, "default/web");
  } finally {
    Object.assign(globalThis, { fetch });
  }
  assert.deepEqual(asked, [
    "http://127.0.0.1:8080/debug/why?object=default%2Fweb",
  ]);
  assert.ok(signal instanceof AbortSignal);
});
