import assert from "node:assert/strict";
import { once } from "node:events";
import http, { request } from "node:http";
import https from "node:https";
import type { Readable } from "node:stream";
import { test } from "node:test";
import { nextTurn } from "../../../core/clock.ts";
import { replaceHttp } from "../../../dev/testing/check/world_http.ts";

type Answer = Readable & {
  readonly statusCode: number;
  readonly headers: Record<string, string>;
};
/** Request of the replaced modules. */
type Sent = ReturnType<typeof http.request>;

/** Runs with the modules replaced, and `fetch` answered by a function. */
async function withHttp(
  answer: (request: Request) => Response | Promise<Response>,
  body: () => Promise<void>,
): Promise<void> {
  const { fetch } = globalThis;
  globalThis.fetch = (input, init) => {
    const request = new Request(input, init);
    const { signal } = request;
    return new Promise((resolve, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason));
      Promise.resolve(answer(request)).then(resolve, reject);
    });
  };
  const restore = replaceHttp();
  try {
    await body();
  } finally {
    restore();
    globalThis.fetch = fetch;
  }
}

/** Text of the answer to a request that is ended. */
async function textOf(sent: Sent): Promise<string> {
  const [answer] = await once(sent, "response") as [Answer];
  return (await answer.toArray()).join("");
}

/** Answers with what was asked. */
async function echo(request: Request): Promise<Response> {
  const { method, url, headers } = request;
  const names = [...headers.keys()].filter((name) =>
    /^(x-|auth|host$|connection$)/.test(name)
  );
  return new Response(
    [
      method,
      url,
      ...names.map((name) => `${name}=${headers.get(name)}`),
      await request.text(),
    ].join(" "),
  );
}

test("Replaced node:http is that of the runtime again at the end", async () => {
  const before = [http.request, http.get, https.request, https.get, request];
  const now = () => [http.request, http.get, https.request, https.get, request];
  await withHttp(echo, () => {
    // Only Node replaces the imported names as well.
    for (const [index, one] of now().slice(0, 4).entries()) {
      assert.notEqual(one, before[index]);
    }
    return Promise.resolve();
  });
  assert.deepEqual(now(), before);
});

test("Replaced node:http takes addresses in all forms", async () => {
  await withHttp(echo, async () => {
    const get = (...given: readonly unknown[]) =>
      textOf((http.get as (...all: readonly unknown[]) => Sent)(...given));
    for (
      const [given, url] of [
        [["http://a.test/1?b=c"], "http://a.test/1?b=c"],
        [[new URL("http://a.test/2"), { method: "get" }], "http://a.test/2"],
        [[{ host: "b.test", port: 81, path: "/3?d" }], "http://b.test:81/3?d"],
        [[{ hostname: "c.test", host: "d.test" }], "http://c.test/"],
        [[{ path: "/4" }], "http://localhost/4"],
        [[{ protocol: "https:", host: "e.test" }], "https://e.test/"],
        [[undefined, "http://f.test/"], "http://f.test/"],
      ] as const
    ) assert.equal(await get(...given), `GET ${url} `);
    assert.equal(
      await textOf(https.get({ host: "a.test" })),
      "GET https://a.test/ ",
    );
  });
});

test("Replaced node:http sends headers and a body as they are given", async () => {
  await withHttp(echo, async () => {
    const sent = http.request("http://a.test/?a=b", {
      method: "put",
      auth: "me:secret",
      headers: {
        "X-One": "1",
        "x-list": ["a", "b"],
        host: "other",
        "x-no": undefined,
      },
    });
    assert.equal(sent.method, "PUT");
    assert.equal(sent.path, "/?a=b");
    assert.equal(sent.getHeader("x-one"), "1");
    sent.setHeader("x-ONE", "2");
    assert.ok(sent.hasHeader("X-one"));
    sent.setHeader("x-gone", "1");
    sent.removeHeader("X-Gone");
    sent.write("ab");
    sent.end("6364", "hex");
    assert.equal(
      await textOf(sent),
      `PUT http://a.test/?a=b authorization=Basic ${
        btoa("me:secret")
      } x-list=a, b x-one=2 abcd`,
    );
    const get = http.request("http://a.test/");
    get.end("a body that GET has not");
    assert.equal(await textOf(get), "GET http://a.test/ ");
  });
});

test("Replaced node:http fails as the runtimes do where nothing answers", async () => {
  const none = () =>
    new Promise<Response>((_, reject) =>
      setImmediate(() => reject(new TypeError("fetch failed")))
    );
  await withHttp(none, async () => {
    for (
      const [module, url, at] of [
        [http, "http://a.test/", "a.test:80"],
        [https, "https://a.test/", "a.test:443"],
        [http, "http://a.test:81/", "a.test:81"],
      ] as const
    ) {
      const [error] = await once(module.get(url), "error");
      assert.equal(error.code, "ECONNREFUSED");
      assert.equal(error.message, `connect ECONNREFUSED ${at}`);
    }
  });
});

test("Replaced node:http ends a request at its signal or by its caller", async () => {
  const ended: string[] = [];
  const never = (request: Request) => {
    request.signal.addEventListener("abort", () => ended.push(request.url));
    return new Promise<Response>(() => {});
  };
  await withHttp(never, async () => {
    const stop = new AbortController();
    const sent = http.get("http://a.test/", { signal: stop.signal });
    await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual(ended, []);
    const failed = once(sent, "error");
    stop.abort(new Error("over"));
    assert.equal((await failed)[0].message, "over");
    const slow = http.get("http://b.test/", { timeout: 1 });
    await once(slow, "timeout");
    const closed = once(slow, "close");
    slow.destroy();
    await closed;
    assert.deepEqual(ended, ["http://a.test/", "http://b.test/"]);
    const late = http.get("http://c.test/");
    await new Promise<void>((resolve) => void late.setTimeout(1, resolve));
    late.destroy();
  });
});

test("Replaced node:http ends its time limit at the answer, and then closes", async () => {
  const { clearTimeout } = globalThis;
  const cleared = new Set<unknown>();
  globalThis.clearTimeout = (timer) => {
    cleared.add(timer);
    clearTimeout(timer);
  };
  const { setTimeout } = globalThis;
  let limit: unknown;
  globalThis.setTimeout = ((callback: () => void, delay?: number) => {
    const timer = setTimeout(callback, delay);
    if (delay === 60_000) limit = timer;
    return timer;
  }) as typeof setTimeout;
  const later = () =>
    new Promise<Response>((resolve) =>
      setImmediate(() => resolve(new Response("ok")))
    );
  try {
    await withHttp(later, async () => {
      const sent = http.get("http://a.test/", { timeout: 60_000 });
      const closed = once(sent, "close");
      const [answer] = await once(sent, "response") as [Answer];
      assert.ok(limit !== undefined && cleared.has(limit));
      assert.equal((await answer.toArray()).join(""), "ok");
      await closed;
      // Nobody reads this answer.
      await once(http.get("http://a.test/"), "close");
    });
  } finally {
    Object.assign(globalThis, { clearTimeout, setTimeout });
  }
});

test("Replaced node:http gives no answer that comes after its request was ended", async () => {
  const arriving = Promise.withResolvers<void>();
  const body = new ReadableStream<Uint8Array>({
    pull: async (controller) => {
      await arriving.promise;
      controller.close();
    },
  });
  await withHttp(() => new Response(body), async () => {
    let answers = 0;
    const sent = http.get("http://a.test/", () => void answers++);
    await nextTurn();
    sent.destroy();
    arriving.resolve();
    await nextTurn();
    assert.equal(answers, 0);
  });
});

test("Replaced node:http sends nothing for a signal that has aborted", async () => {
  const sent: string[] = [];
  const answer = ({ url }: Request) => {
    sent.push(url);
    return new Response();
  };
  await withHttp(answer, async () => {
    const signal = AbortSignal.abort(new Error("over"));
    const failures: unknown[] = [];
    http.get("http://a.test/", { signal })
      .on("error", (error) => failures.push(error));
    await nextTurn();
    assert.deepEqual([sent, failures], [[], [signal.reason]]);
  });
});

test("A replaced request has the URL that node:http would ask", async () => {
  await withHttp(echo, async () => {
    for (
      const [options, url] of [
        [{ host: "::1", port: 80, path: "/a" }, "http://[::1]/a"],
        [{ hostname: "[::1]", path: "/a" }, "http://[::1]/a"],
        [
          { host: "a.example", path: "//b.example/c" },
          "http://a.example//b.example/c",
        ],
        [{ host: "a.example", path: "/b?c=//d" }, "http://a.example/b?c=//d"],
        [{ host: "a.example" }, "http://a.example/"],
      ] as const
    ) {
      const sent = http.request(options);
      sent.end();
      assert.equal((await textOf(sent)).split(" ")[1], url);
    }
  });
});

test("A replaced request has at most one time limit, and 0 sets no limit", async () => {
  const never = () => new Promise<Response>(() => {});
  await withHttp(never, async () => {
    const times: string[] = [];
    const limited = (name: string, ...limits: number[]) => {
      const [timeout, ...others] = limits;
      const sent = http.request({ host: "a.example", timeout });
      sent.on("timeout", () => times.push(name));
      sent.on("error", () => {});
      for (const limit of others) sent.setTimeout(limit);
      sent.end();
      return sent;
    };
    const sent = [
      limited("none", 0),
      limited("removed", 5, 0),
      limited("longer", 5, 60_000),
      limited("short", 60_000, 40),
    ];
    await once(sent.at(-1) as Sent, "timeout");
    assert.deepEqual(times, ["short"]);
    for (const one of sent) one.destroy();
  });
});
