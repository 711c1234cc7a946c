import assert from "node:assert/strict";
import { createServer } from "node:https";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import { ApiServer, type ApiServerOptions } from "@coracle/dev/apiserver";
import {
  createAuthority,
  issueCertificate,
} from "../../../core/admission/certificates.ts";

// deno-lint-ignore no-explicit-any -- tests look at whatever is there
type Any = any;

const CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const V1 = "/apis/sea.coracle.dev/v1/namespaces/default/ships";
const V2 = "/apis/sea.coracle.dev/v2/namespaces/default/ships";

function version(name: string, field: string, storage: boolean) {
  const schema = {
    type: "object",
    properties: {
      spec: { type: "object", properties: { [field]: { type: "string" } } },
    },
  };
  return {
    name,
    served: true,
    storage,
    schema: { openAPIV3Schema: schema },
    selectableFields: [{ jsonPath: `.spec.${field}` }],
    subresources: { status: {} },
  };
}

function crd(clientConfig: Any, reviews = ["v1"]) {
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: "ships.sea.coracle.dev" },
    spec: {
      group: "sea.coracle.dev",
      scope: "Namespaced",
      names: { plural: "ships", singular: "ship", kind: "Ship" },
      versions: [version("v1", "port", false), version("v2", "harbour", true)],
      conversion: {
        strategy: "Webhook",
        webhook: { clientConfig, conversionReviewVersions: reviews },
      },
    },
  };
}

const SERVICE = {
  service: { namespace: "ops", name: "convert", path: "/convert", port: 443 },
};

/** Converts `spec.port` of v1 to `spec.harbour` of v2 and back. */
function convert({ apiVersion, request }: Any) {
  const { uid, desiredAPIVersion, objects } = request;
  const convertedObjects = objects.map((object: Any) => {
    const { port, harbour } = object.spec ?? {};
    const place = port ?? harbour;
    return {
      ...object,
      apiVersion: desiredAPIVersion,
      spec: desiredAPIVersion.endsWith("v1") ? { port: place } : {
        harbour: place,
      },
    };
  });
  return {
    apiVersion,
    kind: "ConversionReview",
    response: { uid, result: { status: "Success" }, convertedObjects },
  };
}

async function withShips(
  handler: (review: Any) => unknown,
  run: (
    send: (
      method: Any,
      path: string,
      body?: unknown,
      headers?: Record<string, string>,
    ) => Promise<{ status: number; body: Any }>,
    server: ApiServer,
  ) => Promise<void>,
  { config = SERVICE, reviews = ["v1"], ...options }: ApiServerOptions & {
    config?: Any;
    reviews?: string[];
  } = {},
): Promise<void> {
  const server = await ApiServer.start({
    port: false,
    establishingDelay: 0,
    services: { "ops/convert:443": handler },
    ...options,
  });
  const send = async (
    method: Any,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ) => {
    const response = await server.transport.send({
      method,
      path,
      headers: {
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        "user-agent": "tester/1",
        ...headers,
      },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    let text = "";
    for await (const chunk of response.body) {
      text += new TextDecoder().decode(chunk);
    }
    return { status: response.status, body: JSON.parse(text) };
  };
  try {
    const created = await send("POST", CRDS, crd(config, reviews));
    assert.equal(created.status, 201, JSON.stringify(created.body));
    await run(send, server);
  } finally {
    await server.stop();
  }
}

const ship = (name: string, apiVersion = "sea.coracle.dev/v1") => ({
  apiVersion,
  kind: "Ship",
  metadata: { name },
  spec: apiVersion.endsWith("v1") ? { port: "Brest" } : { harbour: "Brest" },
});

test("Conversion webhooks convert what is written, read and patched", async () => {
  const reviews: Any[] = [];
  await withShips((review) => {
    reviews.push(review);
    return convert(review);
  }, async (send) => {
    const created = await send("POST", V1, ship("a"));
    assert.equal(created.status, 201, JSON.stringify(created.body));
    assert.deepEqual(created.body.spec, { port: "Brest" });
    assert.equal(created.body.apiVersion, "sea.coracle.dev/v1");
    assert.deepEqual(
      reviews.map(({ request }) => request.desiredAPIVersion),
      ["sea.coracle.dev/v2", "sea.coracle.dev/v1"],
    );
    assert.equal(reviews[0].apiVersion, "apiextensions.k8s.io/v1");
    assert.equal(reviews[0].kind, "ConversionReview");
    const v2 = await send("GET", `${V2}/a`);
    assert.deepEqual(v2.body.spec, { harbour: "Brest" });
    assert.equal(reviews.length, 2);
    const patched = await send(
      "PATCH",
      `${V1}/a`,
      { spec: { port: "Cork" } },
      { "content-type": "application/merge-patch+json" },
    );
    assert.deepEqual(patched.body.spec, { port: "Cork" });
    assert.equal(patched.body.metadata.generation, 2);
    const put = await send("PUT", `${V1}/a`, {
      ...patched.body,
      spec: { port: "Kiel" },
    });
    assert.equal(put.status, 200, JSON.stringify(put.body));
    assert.deepEqual((await send("GET", `${V2}/a`)).body.spec, {
      harbour: "Kiel",
    });
    const scaled = await send("DELETE", `${V1}/a`);
    assert.equal(scaled.body.status, "Success");
  });
});

test("Conversion webhooks get a whole list in one review", async () => {
  const sizes: number[] = [];
  await withShips((review) => {
    sizes.push(review.request.objects.length);
    return convert(review);
  }, async (send) => {
    for (const name of ["a", "b", "c"]) {
      await send("POST", V2, ship(name, "sea.coracle.dev/v2"));
    }
    assert.deepEqual(sizes, []);
    const list = await send("GET", V1);
    assert.deepEqual(
      list.body.items.map(({ spec }: Any) => spec.port),
      ["Brest", "Brest", "Brest"],
    );
    assert.equal(list.body.apiVersion, "sea.coracle.dev/v1");
    assert.deepEqual(sizes, [3]);
    await send("GET", V1, undefined, {
      accept: "application/json;as=Table;g=meta.k8s.io;v=v1",
    });
    assert.deepEqual(sizes, [3, 3]);
  });
});

test("Managed fields of two versions are merged by the conversion webhook", async () => {
  await withShips(convert, async (send) => {
    const apply = (path: string, body: unknown, manager: string) =>
      send("PATCH", `${path}/a?fieldManager=${manager}`, body, {
        "content-type": "application/apply-patch+yaml",
      });
    const first = await apply(V1, ship("a"), "one");
    assert.equal(first.status, 201, JSON.stringify(first.body));
    const other = {
      ...ship("a", "sea.coracle.dev/v2"),
      spec: { harbour: "Cork" },
    };
    const refused = await apply(V2, other, "two");
    assert.equal(refused.status, 409);
    assert.match(refused.body.message, /conflict with "one": \.spec\.port$/);
    const forced = await send(
      "PATCH",
      `${V2}/a?fieldManager=two&force=true`,
      other,
      { "content-type": "application/apply-patch+yaml" },
    );
    assert.equal(forced.status, 200, JSON.stringify(forced.body));
    assert.deepEqual(forced.body.spec, { harbour: "Cork" });
  });
});

test("A watch delivers converted events in order, and fails with an ERROR", async () => {
  let broken = false;
  await withShips((review) => {
    if (broken) throw new Error("no wind");
    return convert(review);
  }, async (send, server) => {
    await send("POST", V2, ship("a", "sea.coracle.dev/v2"));
    const response = await server.transport.send({
      method: "GET",
      path:
        `${V1}?watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan`,
      headers: {},
    });
    const lines = linesOf(response.body);
    const first = await lines();
    assert.equal(first.type, "ADDED");
    assert.deepEqual(first.object.spec, { port: "Brest" });
    assert.equal((await lines()).type, "BOOKMARK");
    await send("POST", V2, ship("b", "sea.coracle.dev/v2"));
    await send("DELETE", `${V2}/b`);
    const added = await lines();
    assert.deepEqual([added.type, added.object.spec], ["ADDED", {
      port: "Brest",
    }]);
    assert.equal((await lines()).type, "DELETED");
    broken = true;
    await send("POST", V2, ship("c", "sea.coracle.dev/v2"));
    const error = await lines();
    assert.equal(error.type, "ERROR");
    assert.equal(error.object.code, 500);
    assert.match(error.object.message, /conversion webhook for .* failed: /);
    assert.equal(await lines(), undefined);
  });
});

test("Field selectors read objects as the conversion webhook gives them", async () => {
  const sizes: number[] = [];
  await withShips((review) => {
    sizes.push(review.request.objects.length);
    return convert(review);
  }, async (send, server) => {
    const ports: [string, string][] = [["a", "Brest"], ["b", "Cork"], [
      "c",
      "Cork",
    ]];
    const of = ([name, harbour]: readonly [string, string]) => ({
      ...ship(name, "sea.coracle.dev/v2"),
      spec: { harbour },
    });
    for (const port of ports) await send("POST", V2, of(port));
    const cork = "fieldSelector=spec.port%3DCork";
    const namesAt = async (path: string) => {
      const { status, body } = await send("GET", path);
      assert.equal(status, 200, JSON.stringify(body));
      return body.items.map(({ metadata }: Any) => metadata.name);
    };
    assert.deepEqual(await namesAt(`${V1}?${cork}`), ["b", "c"]);
    assert.deepEqual(sizes, [3, 2], "one call for each list");
    assert.deepEqual(await namesAt(`${V1}?${cork}&limit=1`), ["b"]);
    const stored = `${V2}?fieldSelector=spec.harbour%3DBrest`;
    assert.deepEqual(await namesAt(stored), ["a"]);
    const { body } = await send("GET", `${V2}?${cork}`);
    assert.match(body.message, /field label not supported: spec\.port/);

    const { body: watch } = await server.transport.send({
      method: "GET",
      path: `${V1}?watch=1&${cork}`,
      headers: {},
    });
    const lines = linesOf(watch);
    const shown = async () => {
      const { type, object } = await lines();
      return `${type} ${object.metadata.name} ${object.spec.port}`;
    };
    assert.equal(await shown(), "ADDED b Cork");
    assert.equal(await shown(), "ADDED c Cork");
    const patch = (name: string, harbour: string) =>
      send("PATCH", `${V2}/${name}`, { spec: { harbour } }, {
        "content-type": "application/merge-patch+json",
      });
    await patch("a", "Oslo");
    await patch("b", "Oslo");
    await patch("a", "Cork");
    await send("DELETE", `${V2}/c`);
    assert.equal(await shown(), "DELETED b Cork");
    assert.equal(await shown(), "ADDED a Cork");
    assert.equal(await shown(), "DELETED c Cork");

    const deleted = await send("DELETE", `${V1}?${cork}`);
    assert.equal(deleted.status, 200, JSON.stringify(deleted.body));
    assert.deepEqual(await namesAt(V2), ["b"]);
  });
});

/** Reader of the events of a watch. */
function linesOf(body: AsyncIterable<Uint8Array>): () => Promise<Any> {
  const chunks = body[Symbol.asyncIterator]();
  let text = "";
  return async () => {
    while (!text.includes("\n")) {
      const { done, value } = await chunks.next();
      if (done) return undefined;
      text += new TextDecoder().decode(value);
    }
    const [line = ""] = text.split("\n", 1);
    text = text.slice(line.length + 1);
    return JSON.parse(line);
  };
}

test("A failed conversion is answered as kube-apiserver does", async () => {
  let change: (answer: Any, review: Any) => unknown = (answer) => answer;
  await withShips(
    (review) => change(convert(review), review),
    async (send) => {
      await send("POST", V2, ship("a", "sea.coracle.dev/v2"));
      const shown = "conversion webhook for sea.coracle.dev/v2, Kind=Ship";
      const cases: [typeof change, string][] = [
        [
          () => {
            throw new Error("sunk");
          },
          `${shown} failed: an error on the server ("sunk") has prevented the request from succeeding`,
        ],
        [
          ({ response, ...answer }) => ({
            ...answer,
            response: {
              ...response,
              result: { status: "Failure", message: "no such port" },
            },
          }),
          `${shown} failed: no such port`,
        ],
        [
          ({ response, ...answer }) => ({
            ...answer,
            response: { ...response, result: { status: "Failed" } },
          }),
          `${shown} failed: response.result.status was 'Failed', not 'Success'`,
        ],
        [
          (answer) => ({ ...answer, response: undefined }),
          `${shown} failed: no response provided`,
        ],
        [
          (answer) => ({ ...answer, apiVersion: "v1" }),
          `${shown} failed: expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got /v1, Kind=ConversionReview`,
        ],
        [
          ({ response, ...answer }) => ({
            ...answer,
            response: { ...response, convertedObjects: [] },
          }),
          `${shown} returned 0 objects, expected 1`,
        ],
        [
          (answer) => changed(answer, (ship) => ({ ...ship, kind: "Boat" })),
          `${shown} returned invalid object at index 0: invalid kind (expected Ship, received Boat)`,
        ],
        [
          (answer) =>
            changed(answer, (ship) => ({
              ...ship,
              apiVersion: "sea.coracle.dev/v2",
            })),
          `${shown} returned invalid object at index 0: invalid groupVersion (expected sea.coracle.dev/v1, received sea.coracle.dev/v2)`,
        ],
        [
          (answer) =>
            changed(answer, (ship) => ({
              ...ship,
              metadata: { ...ship.metadata, name: "b" },
            })),
          `${shown} returned invalid object: must have the same name: a != b`,
        ],
        [
          (answer) =>
            changed(answer, (ship) => ({
              ...ship,
              metadata: { ...ship.metadata, labels: { a: 1 } },
            })),
          `${shown} returned invalid metadata: metadata.labels[a] must be a string, but is int64 in converted object`,
        ],
      ];
      for (const [broken, message] of cases) {
        change = broken;
        const { status, body } = await send("GET", `${V1}/a`);
        assert.equal(status, 500);
        assert.equal(body.message, message);
        assert.equal((await send("GET", V1)).status, 500);
      }
      const refused = await send("POST", V1, ship("c"));
      assert.equal(refused.status, 500);
      change = (answer) => answer;
      assert.equal((await send("GET", `${V1}/c`)).status, 404);
    },
  );
});

function changed(answer: Any, change: (ship: Any) => unknown): unknown {
  const { response } = answer;
  return {
    ...answer,
    response: {
      ...response,
      convertedObjects: response.convertedObjects.map(change),
    },
  };
}

test("A write in the storage version needs no conversion, a dry run in another does", async () => {
  let isDown = false;
  await withShips(
    (review) => {
      if (isDown) throw new Error("sunk");
      return convert(review);
    },
    async (send) => {
      const merge = { "content-type": "application/merge-patch+json" };
      await send("POST", `${V1}?fieldManager=one`, ship("a"));
      const dry = await send("POST", `${V1}?dryRun=All`, ship("b"));
      assert.deepEqual([dry.status, dry.body.spec], [201, { port: "Brest" }]);
      isDown = true;
      for (
        const [path, body] of [
          [`${V2}/a`, { metadata: { labels: { a: "b" } } }],
          [`${V2}/a/status`, { status: {} }],
          [`${V2}/a?dryRun=All`, { spec: { harbour: "Nantes" } }],
        ] as const
      ) {
        const { status, body: ship } = await send("PATCH", path, body, merge);
        assert.equal(status, 200, ship.message);
        // Those of v1 cannot be compared, so they are kept as they were.
        assert.deepEqual(
          ship.metadata.managedFields.map((
            { apiVersion }: { apiVersion: string },
          ) => apiVersion),
          ["sea.coracle.dev/v1"],
        );
      }
      for (
        const [method, path, headers] of [
          ["POST", V1, {}],
          ["PATCH", `${V1}/b`, {
            "content-type": "application/apply-patch+yaml",
          }],
        ] as const
      ) {
        const { status, body } = await send(
          method,
          `${path}?fieldManager=one&dryRun=All`,
          ship("b"),
          headers,
        );
        assert.equal(status, 500);
        assert.match(
          body.message,
          /^conversion webhook for sea.coracle.dev\/v1, Kind=Ship failed: /,
        );
      }
    },
  );
});

test("A conversion changes labels and annotations, and no other metadata", async () => {
  await withShips((review) =>
    changed(convert(review), (ship) => ({
      ...ship,
      metadata: {
        ...ship.metadata,
        labels: { converted: "yes" },
        generation: 99,
        finalizers: ["a/b"],
      },
    })), async (send) => {
    await send("POST", V2, ship("a", "sea.coracle.dev/v2"));
    const { metadata } = (await send("GET", `${V1}/a`)).body;
    assert.deepEqual(metadata.labels, { converted: "yes" });
    assert.equal(metadata.generation, 1);
    assert.equal(metadata.finalizers, undefined);
  });
});

test("A conversion webhook of v1beta1 needs neither uid nor kind", async () => {
  await withShips(
    (review) => {
      assert.equal(review.apiVersion, "apiextensions.k8s.io/v1beta1");
      const { response: { uid: _, ...response } } = convert(review);
      return { response };
    },
    async (send) => {
      await send("POST", V2, ship("a", "sea.coracle.dev/v2"));
      assert.equal((await send("GET", `${V1}/a`)).body.spec.port, "Brest");
    },
    { reviews: ["v7", "v1beta1", "v1"] },
  );
});

test("A conversion webhook that does not answer is given up after 30 s", async () => {
  const clock = new VirtualClock();
  await withShips(
    () => new Promise(() => {}),
    async (send) => {
      await send("POST", V2, ship("a", "sea.coracle.dev/v2"));
      const answer = send("GET", `${V1}/a`);
      await clock.advance(30_000);
      assert.equal(
        (await answer).body.message,
        'conversion webhook for sea.coracle.dev/v2, Kind=Ship failed: Post "https://convert.ops.svc:443/convert?timeout=30s": context deadline exceeded',
      );
    },
    { clock },
  );
});

test("A conversion by a missing service says which one is missing", async () => {
  await withShips(convert, async (send) => {
    await send("POST", V2, ship("a", "sea.coracle.dev/v2"));
    const { body } = await send("GET", `${V1}/a`);
    assert.match(
      body.message,
      /failed: Post "https:\/\/convert\.ops\.svc:443\/convert\?timeout=30s": service "convert" not found$/,
    );
  }, { services: {} });
});

test("Conversion webhooks are called by URL over HTTPS with their caBundle", async () => {
  const authority = createAuthority({ commonName: "ships" });
  const { certificate: cert, key } = issueCertificate(authority, {
    commonName: "convert",
    usage: "server",
    hosts: ["localhost", "127.0.0.1"],
  });
  let redirect = false;
  const web = createServer({ cert, key }, (request, response) => {
    let body = "";
    request.setEncoding("utf8");
    request.on("data", (chunk) => body += chunk);
    request.on("end", () => {
      if (redirect) {
        response.writeHead(307, { location: "/elsewhere" }).end();
        return;
      }
      assert.equal(request.url, "/convert?timeout=30s");
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify(convert(JSON.parse(body))));
    });
  });
  await new Promise<void>((resolve) => web.listen(0, "127.0.0.1", resolve));
  const { port } = web.address() as { port: number };
  const url = `https://127.0.0.1:${port}/convert`;
  try {
    await withShips(
      convert,
      async (send) => {
        await send("POST", V2, ship("a", "sea.coracle.dev/v2"));
        assert.equal((await send("GET", `${V1}/a`)).body.spec.port, "Brest");
        redirect = true;
        assert.match(
          (await send("GET", `${V1}/a`)).body.message,
          /failed: the server responded with the status code 307 but/,
        );
      },
      { config: { url, caBundle: btoa(authority.certificate) } },
    );
    await withShips(convert, async (send) => {
      await send("POST", V2, ship("a", "sea.coracle.dev/v2"));
      assert.match(
        (await send("GET", `${V1}/a`)).body.message,
        /failed: Post "https:.*": tls: failed to verify certificate: x509: certificate signed by unknown authority$/,
      );
    }, { config: { url } });
  } finally {
    web.closeAllConnections?.();
    await new Promise((resolve) => web.close(resolve));
  }
  await withShips(convert, async (send) => {
    await send("POST", V2, ship("a", "sea.coracle.dev/v2"));
    assert.match(
      (await send("GET", `${V1}/a`)).body.message,
      /: dial tcp 127\.0\.0\.1:\d+: connect: connection refused$/,
    );
  }, { config: { url } });
});
