import assert from "node:assert/strict";
import {
  ApiError,
  type ObjectKey,
  patchResource,
  patchStatus,
} from "@coracle/operator/core";
import { ConfigMap } from "@coracle/operator/kinds";
import { byFunction, watch } from "@coracle/operator/sources";
import { keyOf } from "../../core/api/object_key.ts";
import { mutableCopy } from "../../core/json/prune.ts";
import { KEY, startGadgets, writesSince } from "../support/gadget_runs.ts";
import { Gadget, scenario } from "../support/operator_fixture.ts";

const SOURCES = { sources: [watch<Gadget, ConfigMap>(ConfigMap)] };

scenario(
  "A write without effect on the cached state is not sent, and a change is [J9]",
  async (fixture) => {
    const { controller, runs } = await startGadgets(
      fixture,
      async (gadget, ctx) => {
        const { name } = gadget.metadata;
        const { value } = gadget.spec;
        await ctx.apply(ConfigMap, { metadata: { name }, data: { value } });
        await ctx.patch(ConfigMap, name, { data: { merged: value } });
        await ctx.patch(ConfigMap, name, [
          { op: "add", path: "/data/json", value },
        ], { type: "json" });
        const map = mutableCopy(await ctx.get(ConfigMap, name))!;
        map.data = { ...map.data, replaced: value };
        await ctx.replace(ConfigMap, map);
        await ctx.patch(Gadget, name, { status: { count: 1 } }, {
          subresource: "status",
        });
        return patchStatus({ value });
      },
      SOURCES,
    );
    await fixture.create("a");
    await fixture.until(async () =>
      (await fixture.gadget("a"))?.status?.value === "first"
    );
    const before = fixture.requests.length;
    controller.trigger("default/a");
    await fixture.until(() => runs.length === 2);
    await fixture.settle();
    // What others own of the map has changed since the apply: it goes again.
    assert.deepEqual(writesSince(fixture, before), ["patch configmaps"]);
    const applied = fixture.requests.length;
    controller.trigger("default/a");
    await fixture.until(() => runs.length === 3);
    await fixture.settle();
    assert.deepEqual(writesSince(fixture, applied), []);
    const changed = fixture.requests.length;
    await fixture.change("a", { value: "second" });
    await fixture.until(async () =>
      (await fixture.gadget("a"))?.status?.value === "second"
    );
    assert.deepEqual(writesSince(fixture, changed), [
      "patch gadgets", // by the test
      "patch configmaps",
      "patch configmaps",
      "patch configmaps",
      "update configmaps",
      "patch gadgets/status",
    ]);
    assert.deepEqual((await fixture.client.get(ConfigMap, KEY)).data, {
      value: "second",
      merged: "second",
      json: "second",
      replaced: "second",
    });
  },
);

scenario(
  "A write without a matcher is always sent and triggers only on request [J10]",
  async (fixture) => {
    let trigger = false;
    const { controller, runs } = await startGadgets(
      fixture,
      async (gadget, ctx) => {
        const { name } = gadget.metadata;
        await ctx.patch(ConfigMap, name, { data: { value: "same" } }, {
          match: false,
          trigger,
        });
        trigger = false;
      },
      SOURCES,
    );
    await fixture.client.create(ConfigMap, {
      metadata: KEY,
      data: { value: "same" },
    });
    await fixture.create("a");
    await fixture.until(() => runs.length === 1);
    const before = fixture.requests.length;
    controller.trigger("default/a");
    await fixture.until(() => runs.length === 2);
    await fixture.advance(10_000);
    assert.deepEqual(writesSince(fixture, before), ["patch configmaps"]);
    assert.equal(runs.length, 2);
    trigger = true;
    controller.trigger("default/a");
    await fixture.until(() => runs.length === 4);
    await fixture.advance(10_000);
    assert.equal(runs.length, 4);
  },
);

scenario(
  "ctx.delete deletes what was read, and not what it has become since",
  async (fixture) => {
    const { metadata } = await fixture.client.create(ConfigMap, {
      metadata: KEY,
    });
    const ends: unknown[] = [];
    await startGadgets(fixture, async (_gadget, ctx) => {
      const tryTo = async (...args: Parameters<typeof ctx.delete>) => {
        const end = await ctx.delete(...args).then(
          () => "deleted",
          (error) => ApiError.is(error) && error.isConflict,
        );
        const stored = await fixture.client.find(ConfigMap, KEY);
        ends.push([end, stored !== undefined]);
      };
      await fixture.client.patch(ConfigMap, KEY, { data: { a: "b" } });
      await tryTo(ConfigMap, metadata);
      await tryTo(ConfigMap, metadata, { live: true });
      await tryTo(ConfigMap, "a", { live: true, uid: "other" });
      // Such as an owner reference, which has the UID and no version.
      await tryTo(ConfigMap, { ...KEY, uid: "other" } as ObjectKey, {
        live: true,
      });
      await tryTo(ConfigMap, "a", { live: true });
      await tryTo(ConfigMap, "a", { live: true });
    }, { retry: false });
    await fixture.create("a");
    await fixture.until(() => ends.length === 6);
    assert.deepEqual(ends, [
      [true, true],
      [true, true],
      [true, true],
      [true, true],
      ["deleted", false],
      ["deleted", false],
    ]);
  },
);

scenario(
  "ctx.delete with a uid deletes that object, and none of the same name",
  async (fixture) => {
    const made = () => fixture.client.create(ConfigMap, { metadata: KEY });
    const former = await made();
    await fixture.client.delete(ConfigMap, KEY);
    const { metadata: { uid } } = await made();
    const ends: unknown[] = [];
    await startGadgets(fixture, async (_gadget, ctx) => {
      for (const one of [former.metadata.uid, uid]) {
        const end = await ctx.delete(ConfigMap, "a", { uid: one }).then(
          () => "deleted",
          (error) => ApiError.is(error) && error.isConflict,
        );
        ends.push([
          end,
          await fixture.client.find(ConfigMap, KEY) !== undefined,
        ]);
      }
    }, { retry: false });
    await fixture.create("a");
    await fixture.until(() => ends.length === 2);
    assert.deepEqual(ends, [[true, true], ["deleted", false]]);
  },
);

scenario(
  "A replacement needs the version that was read, so no change is lost [J11]",
  async (fixture) => {
    const errors: unknown[] = [];
    let changed: ConfigMap | undefined;
    // The first state of the cache has it.
    await fixture.client.create(ConfigMap, { metadata: KEY });
    await startGadgets(fixture, async (_gadget, ctx) => {
      if (changed !== undefined) return;
      const attempt = (data: Record<string, string>, version?: string) =>
        ctx.replace(ConfigMap, {
          metadata: { ...KEY, resourceVersion: version! },
          data,
        }).catch((error: unknown) => errors.push(error));
      const { metadata } = await ctx.get(ConfigMap) as ConfigMap;
      await attempt({ value: "blind" });
      await fixture.client.patch(ConfigMap, KEY, { data: { theirs: "yes" } });
      await attempt({ value: "stale" }, metadata.resourceVersion);
      changed = await ctx.modify(ConfigMap, "a", (map) => {
        map.data = { ...map.data, ours: "yes" };
      });
      const same = await ctx.modify(ConfigMap, "a", () => {});
      assert.deepEqual(same?.metadata, changed?.metadata);
      assert.equal(await ctx.modify(ConfigMap, "none", () => {}), undefined);
      // What would be lost is refused.
      for (
        const lost of [
          (map: ConfigMap) => ({ ...map, data: {} }),
          async (map: ConfigMap) => {
            map.data = await Promise.reject(new Error("late"));
          },
        ]
      ) {
        await assert.rejects(ctx.modify(ConfigMap, "a", lost), {
          name: "TypeError",
          message:
            /^Cannot modify ConfigMap: .* return nothing: received a(nother object| promise)$/,
        });
      }
    }, { ...SOURCES, retry: false });
    await fixture.create("a");
    await fixture.until(() => changed !== undefined);
    await fixture.settle();
    assert.match(String(errors[0]), /^TypeError: .*resourceVersion/);
    assert.ok(ApiError.is(errors[1]) && errors[1].isConflict);
    assert.deepEqual(changed?.data, { theirs: "yes", ours: "yes" });
    assert.equal(
      fixture.log.filter(({ level }) => level === "error").length,
      0,
    );
  },
);

scenario(
  "modify retries conflicts at most ten times",
  async (fixture) => {
    const results: string[] = [];
    let calls = 0;
    let late = 0;
    // Another client changes the object right before some writes.
    const client = fixture.client.with([(next) => async (request) => {
      const { method, path } = request;
      const isWrite = method !== "GET" && path.includes("/configmaps/");
      if (isWrite && late-- > 0) {
        const data = { late: String(late) };
        await fixture.client.patch(ConfigMap, KEY, { data });
      }
      return await next(request);
    }]);
    await startGadgets(fixture, async (gadget, ctx) => {
      if (results.length > 0) return;
      for (const count of [3, 20]) {
        late = count;
        await ctx.modify(ConfigMap, gadget.metadata.name, (map) => {
          map.data = { ...map.data, calls: String(++calls) };
        }).then(
          (map) => results.push(`written by call ${map?.data?.["calls"]}`),
          (error: unknown) => {
            assert.ok(ApiError.is(error) && error.isConflict);
            results.push(`given up after call ${calls}`);
          },
        );
      }
    }, { operator: { client } });
    await fixture.client.create(ConfigMap, { metadata: KEY });
    await fixture.create("a");
    await fixture.until(() => results.length === 2);
    assert.deepEqual(results, ["written by call 4", "given up after call 14"]);
  },
);

scenario(
  "modify gives nothing for an object that its write does not find",
  async (fixture) => {
    const client = fixture.client.with([
      (next) => (request) =>
        request.method !== "GET" && request.path.includes("/configmaps/")
          ? Promise.reject(
            new ApiError("Cannot patch ConfigMap a: received 404 NotFound", {
              status: 404,
              reason: "NotFound",
            }),
          )
          : next(request),
    ]);
    const results: unknown[] = [];
    const operator = fixture.operator({ client });
    operator.register(Gadget, {
      async reconcile(_gadget, ctx) {
        results.push(
          await ctx.modify(ConfigMap, "a", (map) => {
            map.data = { value: "lost" };
          }),
        );
      },
    });
    await fixture.start(operator);
    await fixture.client.create(ConfigMap, { metadata: KEY });
    await fixture.create("a");
    await fixture.until(() => results.length > 0);
    assert.deepEqual(results, [undefined]);
  },
);

scenario(
  "What modify finds to be as wanted is in the cache before its event comes",
  async (fixture) => {
    const found: unknown[] = [];
    await fixture.client.create(ConfigMap, {
      metadata: KEY,
      data: { value: "old" },
    });
    const { runs } = await startGadgets(fixture, async (_gadget, ctx) => {
      if (found.length > 0) return;
      await fixture.client.patch(ConfigMap, KEY, { data: { value: "new" } });
      await ctx.modify(ConfigMap, "a", (map) => {
        map.data = { value: "new" };
      });
      found.push((await ctx.get(ConfigMap, "a"))?.data);
    }, {
      sources: [
        watch(ConfigMap, { mapper: byFunction((map) => [keyOf(map)]) }),
      ],
    });
    fixture.faults.stallWatches({ resource: "configmaps" });
    await fixture.create("a");
    await fixture.until(() => runs.length === 2);
    assert.deepEqual(found, [{ value: "new" }]);
  },
  { embedded: "it makes the server withhold events" },
);

scenario(
  "An object of a watch of metadata cannot be used as a replacement",
  async (fixture) => {
    const errors: string[] = [];
    const key = { namespace: "default", name: "data" };
    await fixture.client.create(ConfigMap, {
      metadata: key,
      data: { value: "kept" },
    });
    await startGadgets(fixture, async (_gadget, ctx) => {
      const { metadata, ...rest } = (await ctx.get(ConfigMap, "data"))!;
      const annotations = { changed: "yes" };
      await ctx.replace(ConfigMap, {
        ...rest,
        metadata: { ...metadata, annotations },
      }).catch((error: unknown) => void errors.push(String(error)));
      const whole = await ctx.client.get(ConfigMap, key);
      whole.metadata.annotations = annotations;
      await ctx.replace(ConfigMap, whole);
    }, {
      watches: [
        watch(ConfigMap, {
          metadataOnly: true,
          mapper: byFunction(() => []),
        }),
      ],
    });
    await fixture.create("a");
    const found = () => fixture.client.get(ConfigMap, key);
    await fixture.until(async () =>
      (await found()).metadata.annotations !== undefined
    );
    assert.match(
      errors[0] ?? "",
      /only the metadata, so the rest would be lost/,
    );
    assert.deepEqual((await found()).data, { value: "kept" });
  },
);

scenario(
  "ctx.modify changes an empty object whose watch keeps only metadata",
  async (fixture) => {
    const key = { namespace: "default", name: "empty" };
    await fixture.client.create(ConfigMap, { metadata: key });
    await startGadgets(fixture, async (_gadget, ctx) => {
      await ctx.modify(ConfigMap, key, (object) => {
        object.metadata.annotations = { changed: "yes" };
      });
    }, {
      watches: [
        watch(ConfigMap, {
          metadataOnly: true,
          mapper: byFunction(() => []),
        }),
      ],
    });
    await fixture.create("a");
    await fixture.until(async () => {
      const { metadata } = await fixture.client.get(ConfigMap, key);
      return metadata.annotations?.["changed"] === "yes";
    });
  },
);

scenario(
  "An object from a pruned cache cannot be used as a replacement",
  async (fixture) => {
    const errors: string[] = [];
    const { runs } = await startGadgets(fixture, async (gadget, ctx) => {
      await ctx.replace(Gadget, gadget).catch((error: unknown) => {
        errors.push(String(error));
      });
    }, { cache: { prune: ["spec.numberOfExecutions"] } });
    await fixture.create("a", { numberOfExecutions: 3 });
    await fixture.until(() => runs.length === 1);
    assert.match(
      errors[0] ?? "",
      /spec\.numberOfExecutions", which would be lost/,
    );
    assert.equal((await fixture.gadget("a"))?.spec.numberOfExecutions, 3);
  },
);

scenario(
  "A copy of an object from a pruned cache is a replacement if nothing is lost",
  async (fixture) => {
    const answers: string[] = [];
    await startGadgets(fixture, async (gadget, ctx) => {
      if (gadget.spec.value === "changed") return;
      const { name } = gadget.metadata;
      await ctx.replace(Gadget, {
        ...gadget,
        spec: { ...gadget.spec, value: "changed" },
      }).then(
        () => answers.push(name),
        (error: unknown) => answers.push(`${name} ${String(error)}`),
      );
      if (name !== "whole") return;
      // What a reconciler removes by modify() is not lost by accident.
      await ctx.modify(Gadget, "cut", ({ spec }) => {
        delete spec.numberOfExecutions;
      });
    }, { cache: { prune: ["spec.numberOfExecutions"] } });
    await fixture.create("cut", { numberOfExecutions: 3 });
    await fixture.until(() => answers.length === 1);
    assert.match(
      answers[0] ?? "",
      /^cut .*numberOfExecutions", which would be/,
    );
    assert.equal((await fixture.gadget("cut"))?.spec.numberOfExecutions, 3);
    await fixture.create("whole");
    await fixture.until(() => answers.includes("whole"));
    await fixture.until(async () =>
      (await fixture.gadget("cut"))?.spec.numberOfExecutions === undefined
    );
  },
);

for (
  const [what, selection, text] of [
    ["metadata", { metadataOnly: true }, /only the metadata, so the rest/],
    ["pruned objects", { prune: ["spec.value"] }, /"spec\.value", which/],
  ] as const
) {
  scenario(
    `A watch of ${what} of the primary's kind gives no replacements`,
    async (fixture) => {
      const errors: string[] = [];
      await startGadgets(fixture, async (gadget, ctx) => {
        const [other] = await ctx.secondaries(Gadget);
        const { spec, metadata, ...rest } = other!;
        await ctx.replace(Gadget, {
          ...rest,
          ...(spec && { spec: { ...spec } }),
          metadata: { ...metadata, annotations: { changed: "yes" } },
        }).catch((error: unknown) => void errors.push(String(error)));
        assert.equal(gadget.spec.value, "first");
      }, {
        watches: [
          watch(Gadget, {
            ...selection,
            mapper: byFunction((gadget) => [keyOf(gadget)]),
          }),
        ],
      });
      await fixture.create("a");
      await fixture.until(() => errors.length > 0);
      assert.match(errors[0] ?? "", text);
      assert.equal((await fixture.gadget("a"))?.spec.value, "first");
    },
  );
}

scenario(
  "A reconciler adds and removes finalizers through the context [J6]",
  async (fixture) => {
    const seen: (readonly string[] | undefined)[] = [];
    await startGadgets(fixture, async (gadget, ctx) => {
      if (gadget.metadata.deletionTimestamp === undefined) {
        await ctx.addFinalizer();
        await ctx.addFinalizer("example.com/second");
        await ctx.addFinalizer("example.com/second");
        seen.push(ctx.current?.metadata.finalizers);
        await assert.rejects(ctx.addFinalizer("nonsense"), TypeError);
        return;
      }
      await ctx.removeFinalizer();
      await ctx.removeFinalizer("example.com/second");
    }, { allEvents: true });
    await fixture.create("a");
    await fixture.until(() => seen.length === 1);
    assert.deepEqual(seen[0], [
      "gadgets.sample.coracle.dev/finalizer",
      "example.com/second",
    ]);
    await fixture.remove("a");
    await fixture.until(async () => await fixture.gadget("a") === undefined);
  },
);

scenario(
  "A run is prepared once, before its workflow and its reconciler",
  async (fixture) => {
    const steps: string[] = [];
    const operator = fixture.operator();
    operator.register(Gadget, {
      initContext(_gadget, ctx) {
        steps.push("init");
        ctx.attributes.set("greeting", "hello");
      },
      reconcile(_gadget, ctx) {
        steps.push(`reconcile ${ctx.attributes.get("greeting")}`);
      },
      cleanup(_gadget, ctx) {
        steps.push(`cleanup ${ctx.attributes.get("greeting")}`);
      },
    });
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(() => steps.length === 2);
    await fixture.remove("a");
    await fixture.until(() => steps.length === 4);
    assert.deepEqual(steps, [
      "init",
      "reconcile hello",
      "init",
      "cleanup hello",
    ]);
  },
);

scenario(
  "A run has access to the sources and primaries of its controller",
  async (fixture) => {
    const seen: unknown[] = [];
    await startGadgets(fixture, async (_gadget, ctx) => {
      const before = ctx.sources.named("maps");
      const source = watch<Gadget, ConfigMap>(ConfigMap, {
        name: "maps",
      });
      const added = await ctx.sources.add(source);
      const again = await ctx.sources.add(source);
      seen.push(before, added === again, ctx.primaries.list().length);
      await ctx.sources.remove("maps");
      seen.push(ctx.sources.named("maps"));
    });
    await fixture.create("a");
    await fixture.until(() => seen.length === 4);
    assert.deepEqual(seen, [undefined, true, 1, undefined]);
  },
);

scenario(
  "A status with an unknown or a missing field is not sent",
  async (fixture) => {
    const bodies: readonly [object, RegExp][] = [
      [
        { valeu: "x" },
        /status\.valeu: there is no such field, did you mean "value"\?/,
      ],
      [{ count: "many" }, /status\.count: /],
      [{ messages: ["ok", 1] }, /status\.messages\[1\]: /],
    ];
    const errors: string[] = [];
    const { runs } = await startGadgets(fixture, async (_gadget, ctx) => {
      for (const [status] of bodies) {
        await ctx.patch(Gadget, "a", { status }, { subresource: "status" })
          .catch((error: unknown) => errors.push(String(error)));
      }
      throw new Error("Enough");
    }, { retry: false });
    const before = fixture.requests.length;
    await fixture.create("a");
    await fixture.until(() => runs.length === 1);
    await fixture.settle();
    assert.deepEqual(writesSince(fixture, before), ["create gadgets"]);
    bodies.forEach(([, expected], index) =>
      assert.match(errors[index] ?? "", expected)
    );
    assert.match(errors[0] ?? "", /change the status or the schema/);
  },
);

scenario(
  "The observed generation is written, whatever a run writes",
  async (fixture) => {
    const observed = async () =>
      (await fixture.gadget("a"))?.status?.observedGeneration;
    const results = [
      () => undefined,
      () => patchStatus({ value: "told" }),
      () => patchStatus({ value: "told", observedGeneration: 1 }),
      () => patchResource({ spec: { numberOfExecutions: 5 } }),
    ];
    const { runs } = await startGadgets(
      fixture,
      () => results[runs.length - 1]?.(),
    );
    await fixture.create("a");
    await fixture.until(async () => await observed() === 1);
    await fixture.change("a", { value: "second" });
    await fixture.until(async () => await observed() === 2);
    assert.equal((await fixture.gadget("a"))?.status?.value, "told");
    await fixture.change("a", { value: "third" });
    await fixture.until(async () => await observed() === 1);
    await fixture.change("a", { value: "fourth" });
    // The own change of the spec is observed with the run that made it.
    await fixture.until(async () => await observed() === 5);
    await fixture.advance(60_000);
    assert.equal(runs.length, 4);
    const before = fixture.requests.length;
    await fixture.mark("a", { labels: { seen: "again" } });
    await fixture.advance(1_000);
    assert.deepEqual(writesSince(fixture, before), ["patch gadgets"]);
  },
);

scenario(
  "A failed run does not write the observed generation",
  async (fixture) => {
    const { runs } = await startGadgets(fixture, (gadget) => {
      if (gadget.spec.value === "first") throw new Error("Not yet");
      return patchStatus({ value: gadget.spec.value }, { observed: false });
    }, {
      retry: false,
      onError: () => patchStatus({ messages: ["Not yet"] }),
    });
    await fixture.create("a");
    await fixture.until(async () =>
      (await fixture.gadget("a"))?.status?.messages?.length === 1
    );
    await fixture.change("a", { value: "second" });
    await fixture.until(async () =>
      (await fixture.gadget("a"))?.status?.value === "second"
    );
    assert.equal(runs.length, 2);
    const status = (await fixture.gadget("a"))?.status;
    assert.equal(status?.observedGeneration, undefined);
  },
);

scenario(
  "A reconciler may return any thenable",
  async (fixture) => {
    const result = patchStatus({ value: "later" });
    await startGadgets(fixture, () => {
      const then: PromiseLike<typeof result>["then"] = (resolve) =>
        Promise.resolve(result).then(resolve) as never;
      return { then } as Promise<typeof result>;
    });
    await fixture.create("a");
    await fixture.until(async () =>
      (await fixture.gadget("a"))?.status?.value === "later"
    );
  },
);

scenario(
  "The status that onError returns after a timeout is written",
  async (fixture) => {
    const operator = fixture.operator();
    operator.register(Gadget, {
      reconcile: (_gadget, ctx) =>
        new Promise((_, reject) =>
          ctx.signal.addEventListener(
            "abort",
            () => reject(ctx.signal.reason),
          )
        ),
      onError: (_gadget, error) =>
        patchStatus({ value: (error as Error).name }),
    }, { timeout: "1s", retry: false });
    await fixture.start(operator);
    await fixture.create("a");
    await fixture.until(async () =>
      (await fixture.gadget("a"))?.status?.value === "RunAbortedError"
    );
  },
);
