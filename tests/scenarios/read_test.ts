import assert from "node:assert/strict";
import {
  type LogFields,
  patchResource,
  patchStatus,
} from "@coracle/operator/core";
import { ConfigMap, Namespace, Secret } from "@coracle/operator/kinds";
import { watch } from "@coracle/operator/sources";
import { KEY, startGadgets } from "../support/gadget_runs.ts";
import {
  Gadget,
  type LoggedLine,
  scenario,
} from "../support/operator_fixture.ts";

const SOURCES = { sources: [watch<Gadget, ConfigMap>(ConfigMap)] };

/** Fields of the first log line with an error. */
function failureOf(log: readonly LoggedLine[]): LogFields | undefined {
  return log.find(({ fields }) => fields["error"] !== undefined)?.fields;
}

scenario(
  "A run reads one object from the cache, by name and namespace [J1]",
  async (fixture) => {
    await fixture.client.create(Namespace, { metadata: { name: "other" } });
    for (const name of ["a", "b"]) {
      await fixture.client.create(ConfigMap, { metadata: { ...KEY, name } });
    }
    const metadata = { namespace: "other", name: "b" };
    await fixture.client.create(ConfigMap, { metadata });
    const found: (string | undefined)[] = [];
    const reads = () =>
      fixture.requests.filter(({ verb }) => verb === "get").length;
    let before = 0;
    const { runs } = await startGadgets(fixture, async (_gadget, ctx) => {
      before = reads();
      found.push(
        (await ctx.get(ConfigMap))?.metadata.name,
        (await ctx.get(ConfigMap, "b"))?.metadata.name,
        (await ctx.get(ConfigMap, "b", "other"))?.metadata.namespace,
        (await ctx.get(ConfigMap, "none"))?.metadata.name,
        (await ctx.get(Gadget, "a"))?.metadata.name,
      );
      const { secretName }: { secretName?: string } = {};
      await assert.rejects(
        // @ts-expect-error -- the name must be there
        ctx.get(ConfigMap, secretName),
        /^TypeError: Cannot read ConfigMap: the name is missing: received undefined$/,
      );
      await assert.rejects(
        ctx.get(ConfigMap, ""),
        /^TypeError: Cannot read ConfigMap: the name is missing: received an empty text$/,
      );
    }, SOURCES);
    await fixture.create("a");
    await fixture.until(() => runs.length === 1 && found.length === 5);
    assert.deepEqual(found, ["a", "b", "other", undefined, "a"]);
    assert.equal(reads(), before);
  },
);

scenario(
  "A run lists a kind from caches, in one namespace or in all",
  async (fixture) => {
    await fixture.client.create(Namespace, { metadata: { name: "other" } });
    for (const namespace of ["default", "other"]) {
      const metadata = { namespace, name: `in-${namespace}` };
      await fixture.client.create(ConfigMap, { metadata });
    }
    for (const bounded of [false, true]) {
      const found: (readonly string[])[] = [];
      const reads = () =>
        fixture.requests.filter(({ verb, resource }) =>
          verb === "list" && resource === "configmaps"
        ).length;
      let asked = 0;
      const list = async (lists: Promise<readonly ConfigMap[]>) => {
        const all = await lists;
        const names = all.map(({ metadata }) => metadata.name);
        found.push(names.filter((name) => /^in-/.test(name)).toSorted());
      };
      const { operator } = await startGadgets(fixture, async (_gadget, ctx) => {
        const before = reads();
        await list(ctx.list(ConfigMap));
        await list(ctx.list(ConfigMap, "*"));
        await list(ctx.list(ConfigMap, "none"));
        asked += reads() - before;
      }, { sources: [watch(ConfigMap, { bounded })] });
      if (!bounded) await fixture.create("a");
      await fixture.until(() => found.length === 3);
      assert.deepEqual(found, [["in-default"], ["in-default", "in-other"], []]);
      assert.equal(asked, 0);
      await fixture.done(operator.stop());
    }
  },
);

scenario(
  "A run reads kinds without a source from the API server [J2]",
  async (fixture) => {
    const found: unknown[] = [];
    await startGadgets(fixture, async (_gadget, ctx) => {
      const secrets = await ctx.list(Secret);
      found.push(
        (await ctx.get(Secret))?.metadata.name,
        await ctx.get(Secret, "none"),
        secrets.map(({ metadata: { name } }) => name),
        (await ctx.get(Namespace, "default"))?.metadata.name,
        (await ctx.list(Gadget, "*")).length,
      );
    });
    await fixture.client.create(Secret, { metadata: KEY });
    await fixture.create("a");
    await fixture.until(() => found.length === 5);
    assert.deepEqual(found, ["a", undefined, ["a"], "default", 1]);
  },
);

scenario(
  "A run finds secondaries by kind and by source; an unknown source is an error [J3]",
  async (fixture) => {
    const source = watch<Gadget, ConfigMap>(ConfigMap);
    const errors: string[] = [];
    const found: unknown[] = [];
    await startGadgets(fixture, async (_gadget, ctx) => {
      const note = (error: unknown) => {
        errors.push(String(error));
      };
      found.push(
        await ctx.secondary(ConfigMap),
        (await ctx.secondaries(source)).length,
      );
      await ctx.secondaries(Secret).catch(note);
      for (const name of ["x", "y"]) {
        await ctx.apply(ConfigMap, { metadata: { name } });
      }
      found.push((await ctx.secondaries(ConfigMap)).length);
      found.push((await ctx.secondaries(source)).length);
      await ctx.secondary(ConfigMap).catch(note);
    }, { sources: [source] });
    await fixture.create("a");
    await fixture.until(() => errors.length === 2);
    assert.deepEqual(found, [undefined, 0, 2, 2]);
    assert.match(
      errors[0] ?? "",
      /^TypeError: Cannot find secondaries of v1 Secret: the controller does not watch the kind, so add it to owns or watches$/,
    );
    assert.match(
      errors[1] ?? "",
      /^RangeError: .*more than one, so use ctx\.secondaries: received 2$/,
    );
  },
);

scenario(
  "The primary of a run may be changed, cached objects are frozen [J34]",
  async (fixture) => {
    const seen: unknown[] = [];
    await startGadgets(fixture, (gadget, ctx) => {
      gadget.spec.value = "changed by the run";
      seen.push(ctx.current?.spec.value, Object.isFrozen(ctx.current));
    });
    await fixture.create("a");
    await fixture.until(() => seen.length === 2);
    assert.deepEqual(seen, ["first", true]);
  },
);

for (
  const [what, change] of Object.entries<(gadget: Gadget) => unknown>({
    "assigns to": (gadget) => gadget.spec.value = "other",
    "adds to": (gadget) => gadget.spec.numberOfExecutions = 5,
    "deletes from": (gadget) => delete (gadget as Partial<Gadget>).spec,
  })
) {
  scenario(
    `A run that ${what} a cached object fails with a hint at copies`,
    async (fixture) => {
      await startGadgets(fixture, (_gadget, ctx) => {
        change(ctx.current!);
      }, { retry: false });
      await fixture.create("a");
      await fixture.until(() => failureOf(fixture.log) !== undefined);
      const failed = failureOf(fixture.log);
      assert.match(String(failed?.["hint"]), /frozen: .*ctx\.modify\(\)$/);
    },
  );
}

scenario(
  "A result that is an object of the cluster is refused without its data",
  async (fixture) => {
    await startGadgets(
      fixture,
      () => ({ kind: "Secret", data: { password: "aHVudGVyMg==" } }) as never,
      { retry: false },
    );
    await fixture.create("a");
    await fixture.until(() => failureOf(fixture.log) !== undefined);
    const failed = failureOf(fixture.log);
    assert.match(
      String(failed?.["error"]),
      /^TypeError: .* or nothing: received an object with kind, data$/,
    );
    assert.equal(failed?.["hint"], undefined);
  },
);

scenario(
  "onError may write the object and knows the first failure [J4]",
  async (fixture) => {
    const attempts: (readonly [number, boolean])[] = [];
    await startGadgets(fixture, () => {
      throw new Error("Broken");
    }, {
      retry: false,
      onError(_gadget, error, ctx) {
        attempts.push([ctx.retry.attempt, ctx.retry.last]);
        const { message } = error as Error;
        return patchResource({ metadata: { annotations: { failed: message } } })
          .withoutRetry();
      },
    });
    await fixture.create("a");
    await fixture.until(async () =>
      (await fixture.gadget("a"))?.metadata.annotations?.["failed"] === "Broken"
    );
    assert.deepEqual(attempts, [[0, true]]);
  },
);

scenario(
  "A result with a delay only runs again after it [J28]",
  async (fixture) => {
    const { runs } = await startGadgets(
      fixture,
      () => patchStatus({ value: "x" }).rescheduleAfter("30s"),
      { maxInterval: false },
    );
    await fixture.create("a");
    await fixture.until(() => runs.length === 3);
    const [first, second, third] = runs.map(({ at }) => Math.round(at));
    assert.equal(second! - first!, 30_000);
    assert.equal(third! - second!, 30_000);
  },
);
