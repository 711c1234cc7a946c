import assert from "node:assert/strict";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import { jsonLogger } from "@coracle/operator/client";
import { WebhookNotifier } from "@coracle/operator/workflows";
import { nextTurn } from "../../../core/clock.ts";
import type {
  Notification,
  WebhookNotifierOptions,
} from "../../../workflows/conditions/notifier.ts";
import { inTime } from "../../support/in_time.ts";
import { until } from "../../support/until.ts";

const OBJECT = {
  apiVersion: "sample.coracle.dev/v1",
  kind: "Release",
  metadata: {
    namespace: "default",
    name: "web",
    uid: "uid-1",
    resourceVersion: "7",
    annotations: { "event.coracle.dev/team": "blue", other: "no" },
  },
};
const NOTICE: Notification = {
  severity: "error",
  reason: "Broken",
  message: "Oh",
};

/** Answers of a receiver: a status, or an error of the connection. */
type Answer = number | Error;

/** A notifier whose receiver answers as told, and what it received. */
function notifierOf(
  answers: Answer[],
  options: Partial<WebhookNotifierOptions> = {},
) {
  const bodies: string[] = [];
  const warnings: string[] = [];
  const clock = new VirtualClock();
  const log = {
    debug() {},
    info() {},
    error() {},
    warn: (message: string) => void warnings.push(message),
    with: () => log,
  };
  const notifier = new WebhookNotifier({
    url: "https://notify.example.com/",
    controller: "release",
    clock,
    log,
    fetch: (_url, init) => {
      bodies.push(String(init?.body));
      const answer = answers.shift() ?? 200;
      return answer instanceof Error
        ? Promise.reject(answer)
        : Promise.resolve(new Response(null, { status: answer }));
    },
    ...options,
  });
  return { notifier, bodies, warnings, clock };
}

/** Lets a notifier get to its end. */
async function flush(
  { notifier, clock }: ReturnType<typeof notifierOf>,
): Promise<void> {
  let done = false;
  void notifier.flush().then(() => done = true);
  await clock.runUntil(() => done, { idleTurns: 1_000 });
}

test("A receiver that answers 500 is asked again [F43]", async () => {
  const one = notifierOf([500, 503, 200]);
  one.notifier.notify(OBJECT, NOTICE);
  await flush(one);
  assert.equal(one.bodies.length, 3);
  assert.deepEqual(one.warnings, []);
  assert.equal(one.clock.now(), 1_500);
});

test("A receiver that answers 429 knows already, and is not asked again [F43]", async () => {
  const one = notifierOf([429]);
  one.notifier.notify(OBJECT, NOTICE);
  await flush(one);
  assert.equal(one.bodies.length, 1);
  assert.deepEqual(one.warnings, []);
});

test("A receiver that refuses, or is never there, is given up with a warning [F43]", async () => {
  const refused = notifierOf([400]);
  refused.notifier.notify(OBJECT, NOTICE);
  await flush(refused);
  assert.equal(refused.bodies.length, 1);
  assert.deepEqual(refused.warnings, [
    "The receiver has refused a notification",
  ]);

  const down = notifierOf(Array(9).fill(500));
  down.notifier.notify(OBJECT, NOTICE);
  await flush(down);
  assert.equal(down.bodies.length, 4);
  assert.deepEqual(down.warnings, ["The receiver has refused a notification"]);

  const gone = notifierOf(Array(9).fill(new TypeError("no route")));
  gone.notifier.notify(OBJECT, NOTICE);
  await flush(gone);
  assert.equal(gone.bodies.length, 4);
  assert.deepEqual(gone.warnings, ["Cannot deliver a notification"]);
});

test("A notification has the fields of Flux' receivers, and the selected annotations", async () => {
  const one = notifierOf([]);
  const message = "x".repeat(40_000);
  one.notifier.notify(OBJECT, { ...NOTICE, message });
  await flush(one);
  assert.deepEqual(JSON.parse(one.bodies[0]!), {
    involvedObject: {
      apiVersion: "sample.coracle.dev/v1",
      kind: "Release",
      namespace: "default",
      name: "web",
      uid: "uid-1",
      resourceVersion: "7",
    },
    severity: "error",
    reason: "Broken",
    message: message.slice(0, 39_000),
    timestamp: "2026-01-01T00:00:00Z",
    metadata: { team: "blue" },
    reportingController: "release",
    reportingInstance: "release",
  });
});

test("A notifier reads no answer, so that its connection is free again", async () => {
  let cancelled = 0;
  const one = notifierOf([], {
    fetch: () =>
      Promise.resolve(
        new Response(new ReadableStream({ cancel: () => void cancelled++ })),
      ),
  });
  one.notifier.notify(OBJECT, NOTICE);
  await flush(one);
  assert.equal(cancelled, 1);
});

test("Notices that wait are delivered in order, and too many are dropped", async () => {
  const one = notifierOf([]);
  for (let count = 0; count < 300; count++) {
    one.notifier.notify(OBJECT, { ...NOTICE, message: String(count) });
  }
  await flush(one);
  // The first one is under way already when the others begin to wait.
  assert.equal(one.bodies.length, 257);
  assert.equal(one.warnings.length, 43);
  const messages = one.bodies.map((body) => Number(JSON.parse(body).message));
  assert.deepEqual(messages, messages.toSorted((a, b) => a - b));
});

test("A receiver that hangs is given up in time, and stop ends everything", async () => {
  const server = await listening();
  try {
    const { port } = server.address() as AddressInfo;
    const url = `http://127.0.0.1:${port}/`;
    const one = notifierOf([], { url, fetch: globalThis.fetch, attempts: 1 });
    let requests = 0;
    server.on("request", () => requests++);
    one.notifier.notify(OBJECT, NOTICE);
    await until("a request", () => requests === 1);
    await one.clock.advance(5_000);
    await one.notifier.flush();
    assert.deepEqual(one.warnings, ["Cannot deliver a notification"]);

    one.notifier.notify(OBJECT, NOTICE);
    one.notifier.notify(OBJECT, NOTICE);
    await until("another request", () => requests === 2);
    one.warnings.length = 0;
    await one.notifier.stop();
    assert.equal(one.warnings.length, 1, "of the one under way");
    one.notifier.notify(OBJECT, NOTICE);
    await one.notifier.flush();
    assert.equal(requests, 2);
    assert.equal(one.warnings.length, 1);
  } finally {
    server.closeAllConnections();
    server.close();
  }
});

test("A notifier that stops ends its request, and its pause before the next", async () => {
  let signal: AbortSignal | null | undefined;
  const headers = { "content-type": "application/cloudevents+json" };
  const hanging = notifierOf([], {
    headers,
    fetch(_url, init) {
      signal = init?.signal;
      assert.deepEqual(init?.headers, headers);
      return new Promise(() => {});
    },
  });
  hanging.notifier.notify(OBJECT, NOTICE);
  await until("a request", () => signal);
  await hanging.notifier.stop();
  assert.equal(signal?.aborted, true);

  const pausing = notifierOf([500]);
  pausing.notifier.notify(OBJECT, NOTICE);
  await nextTurn();
  assert.equal(pausing.clock.pendingTimers, 1, "the pause after the answer");
  await inTime("it stops", pausing.notifier.stop());
  assert.equal(pausing.clock.pendingTimers, 0);
  assert.equal(pausing.bodies.length, 1);
});

test("A notifier follows no redirect: its headers are for one receiver", async () => {
  const server = await listening();
  try {
    const paths: (string | undefined)[] = [];
    server.on("request", ({ url }, response) => {
      paths.push(url);
      response.writeHead(307, { location: "/other" }).end();
    });
    const { port } = server.address() as AddressInfo;
    const one = notifierOf([], {
      url: `http://127.0.0.1:${port}/`,
      headers: { authorization: "Bearer secret" },
      fetch: globalThis.fetch,
      attempts: 1,
    });
    one.notifier.notify(OBJECT, NOTICE);
    await one.notifier.flush();
    assert.deepEqual(paths, ["/"]);
    assert.deepEqual(one.warnings, ["Cannot deliver a notification"]);
  } finally {
    server.closeAllConnections();
    server.close();
  }
});

test("A notifier logs nothing of its URL when the receiver cannot be reached", async () => {
  const server = await listening();
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  await new Promise((resolve) => server.close(resolve));
  for (
    const url of [`http://${host}/s3cret?s3cret`, `http://a:s3cret@${host}`]
  ) {
    // As Deno says it, and as the present runtime does.
    const said = new TypeError(
      `error sending request for url (${url}): refused`,
    );
    for (const fetch of [() => Promise.reject(said), globalThis.fetch]) {
      const lines: string[] = [];
      const log = jsonLogger({ write: (line) => void lines.push(line) });
      const { notifier } = notifierOf([], { url, fetch, log, attempts: 1 });
      notifier.notify(OBJECT, NOTICE);
      await notifier.flush();
      assert.match(lines.join(), /"error":"(?:\w*Error)?.+"/);
      assert.doesNotMatch(lines.join(), /s3cret/);
    }
  }
});

test("A notifier refuses addresses and options that make no sense", () => {
  const controller = "release";
  assert.throws(() => new WebhookNotifier({ url: "file:///x", controller }), {
    name: "TypeError",
    message: /must be a URL of http: or https:: received file:$/,
  });
  assert.throws(
    () => new WebhookNotifier({ url: "http://x/", controller, attempts: 0 }),
    RangeError,
  );
});

/** A server that takes requests and never answers. */
async function listening(): Promise<Server> {
  const server = createServer(() => {});
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server;
}
