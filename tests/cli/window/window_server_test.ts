import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiServer, type FaultRule, type Faults } from "@coracle/dev/apiserver";
import { FAULTS } from "../../../dev/cli/window/fault_choices.ts";
import { TOKEN_HEADER } from "../../../dev/cli/window/local_server.ts";
import {
  serveWindow,
  type WindowOptions,
} from "../../../dev/cli/window/window_server.ts";

/** Serves a window, and hands over a function that asks it. */
async function withWindow(
  options: Pick<WindowOptions, "source" | "faults">,
  play: (
    ask: (path: string, body?: unknown) => Promise<Response>,
  ) => Promise<void>,
): Promise<void> {
  const window = await serveWindow({ ...options, port: 0 });
  const [url = "", token = ""] = window.url.split("#");
  try {
    await play((path, body) =>
      fetch(new URL(path, url), {
        method: body === undefined ? "GET" : "POST",
        headers: { [TOKEN_HEADER]: token },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      })
    );
  } finally {
    await window.close();
  }
}

const shown = {
  state: () => Promise.resolve([{ at: "now" }]),
  object: (key: string) => Promise.resolve({ histories: [{ key }] }),
};

test("A window serves its page, style and program without inline code", () =>
  withWindow({ source: shown }, async (ask) => {
    const page = await (await ask("/")).text();
    for (const [, attribute, path = ""] of page.matchAll(/(src|href)="(.)/g)) {
      assert.ok(["/", "d"].includes(path), `${attribute} from elsewhere`);
    }
    assert.ok(!/<script>|<style>| on\w+="/.test(page));
    const script = await (await ask("/page.js")).text();
    assert.doesNotThrow(() => new Function(script));
    assert.ok(!/innerHTML|document\.write|eval\(/.test(script));
    assert.match(await (await ask("/page.css")).text(), /color-scheme/);
  }));

test("A window that only shows refuses actions", () =>
  withWindow({ source: shown }, async (ask) => {
    assert.deepEqual(await (await ask("/api/state")).json(), {
      dev: false,
      operators: [{ at: "now" }],
    });
    const found = await ask("/api/object?object=default%2Fa");
    assert.deepEqual(await found.json(), {
      histories: [{ key: "default/a" }],
    });
    const acted = await ask("/api/act", { action: "reconcile" });
    assert.equal(acted.status, 404);
    await acted.body?.cancel();
  }));

test("A window injects each fault that it offers, and refuses others", async () => {
  const server = await ApiServer.start({ port: false });
  const acted: unknown[] = [];
  const source = {
    ...shown,
    act(request: unknown) {
      acted.push(request);
      return Promise.resolve();
    },
  };
  try {
    await withWindow({ source, faults: server.faults }, async (ask) => {
      for (const fault of Object.keys(FAULTS)) {
        const response = await ask("/api/act", { action: "fault", fault });
        assert.equal(response.status, 200, fault);
        await response.body?.cancel();
      }
      for (const fault of ["other", "constructor", undefined]) {
        const response = await ask("/api/act", { action: "fault", fault });
        assert.equal(response.status, 400);
        await response.body?.cancel();
      }
      const request = { action: "pause", controller: "a", object: "b/c" };
      assert.equal((await ask("/api/act", request)).status, 200);
      assert.deepEqual(acted, [request]);
    });
  } finally {
    server.faults.clear();
    await server.stop();
  }
});

/** Calls of an injected fault, and what ran after its time was over. */
function injected(name: string): {
  readonly calls: readonly unknown[];
  readonly timers: readonly unknown[];
} {
  const calls: unknown[] = [];
  const timers: unknown[] = [];
  const noted = (method: string) => (options?: unknown) =>
    void calls.push(options === undefined ? [method] : [method, options]);
  const faults = {
    add(rule: FaultRule) {
      calls.push(["add", rule]);
      return { hits: 0, remove: () => void calls.push(["remove"]) };
    },
    restart: noted("restart"),
    cutWatches: noted("cutWatches"),
    expireWatches: noted("expireWatches"),
  } as object as Faults;
  const { setTimeout } = globalThis;
  Object.assign(globalThis, {
    setTimeout(run: () => void, delay: number) {
      timers.push(delay);
      run();
      return { unref: () => void timers.push("unref") };
    },
  });
  try {
    FAULTS[name]?.inject(faults);
  } finally {
    Object.assign(globalThis, { setTimeout });
  }
  return { calls, timers };
}

test("FAULTS do what their titles say, for the time that they say", () => {
  const of = (name: string) => injected(name).calls;
  assert.deepEqual(of("outage"), [["restart", { downFor: 10_000 }]]);
  assert.deepEqual(of("watches"), [["cutWatches"]]);
  assert.deepEqual(of("expired"), [["expireWatches"]]);
  for (
    const [name, rule] of [
      ["errors", { effect: { status: 500 }, probability: 0.5 }],
      ["conflicts", { effect: { conflict: true } }],
      ["slow", { effect: { delay: 2_000 } }],
    ] as const
  ) {
    const { calls, timers } = injected(name);
    assert.deepEqual(calls, [["add", rule], ["remove"]]);
    // The timer keeps no process alive.
    assert.deepEqual(timers, [10_000, "unref"]);
  }
});

test("A window acts on a POST only, and answers when it has acted", async () => {
  let acted = 0;
  const source = {
    ...shown,
    act: () =>
      new Promise<void>((resolve, reject) => {
        acted++;
        setImmediate(() =>
          acted === 1
            ? resolve()
            : reject(new Error("Cannot act: there is no such controller"))
        );
      }),
  };
  await withWindow({ source }, async (ask) => {
    for (
      const [path, body] of [
        ["/api/act", undefined],
        ["/api/object", {}],
        ["/api/state", {}],
      ] as const
    ) {
      const response = await ask(path, body);
      assert.equal(response.status, 404, path);
      await response.body?.cancel();
    }
    assert.equal(acted, 0);
    const done = await ask("/api/act", { action: "pause" });
    assert.deepEqual([done.status, await done.json()], [200, {}]);
    const refused = await ask("/api/act", { action: "pause" });
    assert.deepEqual([refused.status, await refused.text()], [
      500,
      "Cannot act: there is no such controller\n",
    ]);
    const fault = await ask("/api/act", { action: "fault", fault: "outage" });
    assert.equal(fault.status, 400);
    await fault.body?.cancel();
  });
});
