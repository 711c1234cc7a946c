import assert from "node:assert/strict";
import { z } from "zod";
import {
  type Client,
  defineKind,
  type ObjectOf,
  type Operator,
  patchStatus,
  setStatus,
} from "@coracle/operator/core";
import { Event } from "@coracle/operator/kinds";
import { type OperatorFixture, scenario } from "../support/operator_fixture.ts";

const CONDITIONS = z.array(z.object({ type: z.string(), status: z.string() }))
  .meta({
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["type"],
  });

/** Kind whose status has fields of two writers and a keyed list. */
const Buoy = defineKind({
  group: "sample.coracle.dev",
  version: "v1",
  kind: "Buoy",
  spec: z.object({ value: z.string() }),
  status: z.object({
    ours: z.string(),
    theirs: z.string(),
    message: z.string(),
    parts: z.record(z.string(), z.string()),
    tags: z.array(z.string()),
    observedGeneration: z.number(),
    conditions: CONDITIONS,
  }).partial(),
});
type Buoy = ObjectOf<typeof Buoy>;
type Status = NonNullable<Buoy["status"]>;
type Result = ReturnType<typeof patchStatus<Status>>;

const KEY = { namespace: "default", name: "a" };

/** Kind whose status has no field that every write sets. */
const Float = defineKind({
  group: "sample.coracle.dev",
  version: "v1",
  kind: "Float",
  spec: z.object({ value: z.string() }),
  status: z.object({
    ours: z.string(),
    parts: z.object({ first: z.string() }).partial(),
    conditions: CONDITIONS,
  }).partial(),
});

/** Operator "buoy" whose runs return the result of a function. */
async function start(
  fixture: OperatorFixture,
  write: (buoy: Buoy) => Result | Promise<Result>,
  client: Client = fixture.client,
): Promise<Operator> {
  const operator = fixture.operator({ client });
  operator.register(Buoy, { reconcile: write }, {
    retry: { initial: "1s", jitter: 0 },
  });
  await fixture.start(operator);
  return operator;
}

async function create(fixture: OperatorFixture): Promise<void> {
  await fixture.install(Buoy);
  await fixture.client.create(Buoy, {
    metadata: KEY,
    spec: { value: "first" },
  });
}

/** Applies a status as another field manager. */
async function meddle(fixture: OperatorFixture, status: Status): Promise<void> {
  await fixture.client.status.apply(Buoy, { metadata: KEY, status }, {
    fieldManager: "other",
    force: true,
  });
}

async function change(fixture: OperatorFixture, value: string): Promise<void> {
  await fixture.client.patch(Buoy, KEY, { spec: { value } });
}

async function statusOf(fixture: OperatorFixture): Promise<Status> {
  const { status = {} } = await fixture.client.get(Buoy, KEY);
  const { observedGeneration: _, ...fields } = status;
  return fields;
}

/** Waits for the first run of a generation and returns the status. */
async function reconciled(
  fixture: OperatorFixture,
  generation: number,
): Promise<Status> {
  await fixture.until(async () =>
    (await fixture.client.get(Buoy, KEY)).status?.observedGeneration ===
      generation
  );
  await fixture.settle();
  return await statusOf(fixture);
}

function condition(type: string, status = "True") {
  return { type, status };
}

const WRITES = { patchStatus, setStatus };

/** Client that does something right before some writes of a status. */
function interrupted(
  fixture: OperatorFixture,
  indexes: readonly number[],
  act: () => Promise<unknown>,
): { readonly client: Client; readonly statuses: number[] } {
  const statuses: number[] = [];
  let writes = 0;
  const client = fixture.client.with([(next) => async (request) => {
    if (request.method !== "PATCH" || !request.path.includes("/status")) {
      return await next(request);
    }
    if (indexes.includes(++writes)) await act();
    const response = await next(request);
    statuses.push(response.status);
    return response;
  }]);
  return { client, statuses };
}

scenario(
  "patchStatus merges conditions again after a write in between",
  async (fixture) => {
    await create(fixture);
    const { client, statuses } = interrupted(
      fixture,
      [1],
      () => meddle(fixture, { conditions: [condition("Theirs")] }),
    );
    let runs = 0;
    const operator = fixture.operator({ client });
    operator.register(Buoy, {
      reconcile() {
        runs++;
        return patchStatus({ conditions: [condition("Ours")] });
      },
    });
    await fixture.start(operator);
    assert.deepEqual((await reconciled(fixture, 1)).conditions, [
      condition("Theirs"),
      condition("Ours"),
    ]);
    assert.deepEqual(statuses, [409, 200]);
    assert.equal(runs, 1);
  },
);

scenario(
  "patchStatus loses no condition that is written before its second attempt",
  async (fixture) => {
    await create(fixture);
    let meddled = 0;
    const { client, statuses } = interrupted(
      fixture,
      [1, 2],
      () => meddle(fixture, { conditions: [condition(`Theirs${++meddled}`)] }),
    );
    const operator = fixture.operator({ client });
    operator.register(Buoy, {
      reconcile: () => patchStatus({ conditions: [condition("Ours")] }),
    });
    await fixture.start(operator);
    assert.deepEqual((await reconciled(fixture, 1)).conditions, [
      condition("Theirs2"),
      condition("Ours"),
    ]);
    assert.deepEqual(statuses, [409, 409, 200]);
  },
);

scenario(
  "setStatus removes old fields again after a write in between",
  async (fixture) => {
    await create(fixture);
    const first = await start(
      fixture,
      () => patchStatus({ message: "old", conditions: [condition("Ours")] }),
    );
    await reconciled(fixture, 1);
    await fixture.done(first.stop());
    const { client, statuses } = interrupted(
      fixture,
      [2],
      () => meddle(fixture, { theirs: "1", conditions: [condition("Theirs")] }),
    );
    const operator = fixture.operator({ client });
    operator.register(Buoy, { reconcile: () => setStatus({ ours: "1" }) });
    await fixture.start(operator);
    await fixture.until(() => statuses.length === 3);
    await fixture.settle();
    assert.deepEqual(statuses, [200, 409, 200]);
    assert.deepEqual(await statusOf(fixture), {
      ours: "1",
      theirs: "1",
      conditions: [condition("Theirs")],
    });
  },
);

scenario(
  "setStatus keeps a field that another manager has claimed with the same value",
  async (fixture) => {
    await create(fixture);
    const first = await start(
      fixture,
      () => patchStatus({ message: "same", parts: { both: "1", ours: "1" } }),
    );
    await reconciled(fixture, 1);
    await fixture.done(first.stop());
    await meddle(fixture, { message: "same", parts: { both: "1" } });
    await start(fixture, () => setStatus({ ours: "1" }));
    await fixture.until(async () =>
      (await statusOf(fixture)).parts?.["ours"] === undefined
    );
    assert.deepEqual(await statusOf(fixture), {
      ours: "1",
      message: "same",
      parts: { both: "1" },
    });
  },
);

for (const [name, write] of Object.entries(WRITES)) {
  scenario(
    `${name} sends the uid of the object that the run was about`,
    async (fixture) => {
      await create(fixture);
      const bodies: string[] = [];
      const client = fixture.client.with([(next) => (request) => {
        if (request.path.includes("/status")) bodies.push(`${request.body}`);
        return next(request);
      }]);
      const operator = fixture.operator({ client });
      operator.register(Buoy, { reconcile: () => write({ ours: "1" }) });
      await fixture.start(operator);
      await reconciled(fixture, 1);
      const { uid } = (await fixture.client.get(Buoy, KEY)).metadata;
      assert.deepEqual(
        bodies.map((body) => JSON.parse(body).metadata.uid),
        [uid],
      );
    },
  );
}

scenario(
  "A status write that fails lets later events through",
  async (fixture) => {
    await create(fixture);
    let runs = 0;
    const { client } = interrupted(fixture, [1], () => {
      throw new Error("Connection lost");
    });
    const operator = fixture.operator({ client });
    operator.register(Buoy, {
      reconcile: ({ spec }) => {
        runs++;
        return patchStatus({ ours: spec.value });
      },
    }, { retry: false, generationAware: false });
    await fixture.start(operator);
    await fixture.until(() =>
      fixture.log.some(({ message }) => message.startsWith("Run failed"))
    );
    await fixture.client.patch(Buoy, KEY, {
      metadata: { labels: { changed: "yes" } },
    });
    await fixture.until(() => runs === 2, 5_000);
  },
);

for (const [name, write] of Object.entries(WRITES)) {
  scenario(
    `${name} and another manager keep each other's fields`,
    async (fixture) => {
      await create(fixture);
      await meddle(fixture, { theirs: "1", parts: { theirs: "1" } });
      await start(
        fixture,
        ({ spec }) => write({ ours: spec.value, parts: { ours: spec.value } }),
      );
      await reconciled(fixture, 1);
      await meddle(fixture, { theirs: "2", parts: { theirs: "2" } });
      await change(fixture, "second");
      assert.deepEqual(await reconciled(fixture, 2), {
        ours: "second",
        theirs: "2",
        parts: { ours: "second", theirs: "2" },
      });
    },
  );

  scenario(
    `${name} and another manager keep each other's conditions`,
    async (fixture) => {
      await create(fixture);
      await meddle(fixture, { conditions: [condition("Theirs")] });
      await start(
        fixture,
        ({ spec }) => write({ conditions: [condition("Ours", spec.value)] }),
      );
      await reconciled(fixture, 1);
      await meddle(fixture, { conditions: [condition("Theirs", "False")] });
      await change(fixture, "second");
      assert.deepEqual((await reconciled(fixture, 2)).conditions, [
        condition("Theirs", "False"),
        condition("Ours", "second"),
      ]);
    },
  );

  scenario(
    `${name} after a foreign write that its cache has missed keeps that write`,
    async (fixture) => {
      await create(fixture);
      let runs = 0;
      await start(fixture, async (buoy) => {
        if (runs++ === 0) {
          // The run keeps the state from before these writes.
          await meddle(fixture, {
            theirs: "new",
            conditions: [condition("Theirs")],
          });
        }
        return write({
          ...buoy.status,
          ours: "1",
          conditions: [
            ...(buoy.status?.conditions ?? []),
            condition("Ours"),
          ],
        });
      });
      assert.deepEqual(await reconciled(fixture, 1), {
        ours: "1",
        theirs: "new",
        conditions: [condition("Theirs"), condition("Ours")],
      });
      assert.equal(runs, 1, "a conflict is resolved within the run");
    },
  );
}

scenario(
  "patchStatus writes back no condition that it was given and did not change",
  async (fixture) => {
    await create(fixture);
    await meddle(fixture, { conditions: [condition("Theirs", "1")] });
    await start(fixture, async (buoy) => {
      await meddle(fixture, { conditions: [condition("Theirs", "2")] });
      return patchStatus({
        conditions: [...buoy.status?.conditions ?? [], condition("Ours")],
      });
    });
    assert.deepEqual((await reconciled(fixture, 1)).conditions, [
      condition("Theirs", "2"),
      condition("Ours"),
    ]);
  },
);

scenario(
  "patchStatus with a condition list fails after five conflicts in one run",
  async (fixture) => {
    await create(fixture);
    let changes = 0;
    const { client, statuses } = interrupted(
      fixture,
      [1, 2, 3, 4, 5],
      () => meddle(fixture, { theirs: String(++changes) }),
    );
    await start(
      fixture,
      () => patchStatus({ conditions: [condition("Ours")] }),
      client,
    );
    await fixture.until(() =>
      fixture.log.some(({ message }) => message.startsWith("Run failed"))
    );
    assert.deepEqual(statuses, [409, 409, 409, 409, 409]);
    await fixture.until(async () =>
      (await statusOf(fixture)).conditions?.length === 1
    );
  },
);

scenario(
  "setStatus removes what setStatus and patchStatus wrote and it leaves out",
  async (fixture) => {
    await create(fixture);
    await meddle(fixture, { theirs: "1", conditions: [condition("Theirs")] });
    const results: Record<string, Result> = {
      first: setStatus({
        ours: "1",
        tags: ["a"],
        parts: { set: "1" },
        conditions: [condition("Set")],
      }),
      second: patchStatus({
        message: "patched",
        tags: ["b"],
        parts: { patched: "1" },
        conditions: [condition("Patched")],
      }),
      third: setStatus({ ours: "2" }),
    };
    await start(fixture, ({ spec }) => results[spec.value]!);
    await reconciled(fixture, 1);
    await change(fixture, "second");
    assert.deepEqual(await reconciled(fixture, 2), {
      ours: "1",
      theirs: "1",
      message: "patched",
      tags: ["b"],
      parts: { set: "1", patched: "1" },
      conditions: [
        condition("Theirs"),
        condition("Set"),
        condition("Patched"),
      ],
    });
    await change(fixture, "third");
    await fixture.until(async () =>
      (await statusOf(fixture)).message === undefined
    );
    assert.deepEqual(await reconciled(fixture, 3), {
      ours: "2",
      theirs: "1",
      conditions: [condition("Theirs")],
    });
  },
);

scenario(
  "setStatus without a field removes all of them, nested ones too",
  async (fixture) => {
    await fixture.install(Float);
    await fixture.client.create(Float, {
      metadata: KEY,
      spec: { value: "full" },
    });
    const results = {
      full: setStatus({
        ours: "1",
        parts: { first: "1" },
        conditions: [condition("A"), condition("B")],
      }),
      list: setStatus({ ours: "1", parts: { first: "1" } }),
      part: setStatus({ ours: "1", parts: { first: undefined } }),
      none: setStatus({ ours: undefined }),
    };
    const operator = fixture.operator();
    operator.register(Float, {
      reconcile: ({ spec: { value } }) =>
        results[value as keyof typeof results],
    }, { retry: { initial: "1s", jitter: 0 } });
    await fixture.start(operator);
    const status = async () => (await fixture.client.get(Float, KEY)).status;
    await fixture.until(async () => (await status())?.parts?.first === "1");
    await fixture.client.patch(Float, KEY, { spec: { value: "list" } });
    await fixture.until(async () => !(await status())?.conditions?.length);
    assert.equal((await status())?.parts?.first, "1");
    await fixture.client.patch(Float, KEY, { spec: { value: "part" } });
    await fixture.until(async () => (await status())?.parts?.first !== "1");
    assert.equal((await status())?.ours, "1");
    await fixture.client.patch(Float, KEY, { spec: { value: "none" } });
    await fixture.until(async () => (await status())?.ours === undefined);
    await fixture.settle();
    assert.deepEqual(
      fixture.log.filter(({ message }) => message.startsWith("Run failed")),
      [],
    );
  },
);

scenario(
  "setStatus after a restart removes what earlier processes wrote",
  async (fixture) => {
    await create(fixture);
    const results: Result[] = [
      setStatus({ ours: "1", message: "set" }),
      patchStatus({ tags: ["patched"] }),
      setStatus({ ours: "3" }),
    ];
    for (const [index, result] of results.entries()) {
      const operator = await start(fixture, () => result);
      await reconciled(fixture, index + 1);
      await fixture.done(operator.stop());
      await change(fixture, `${index}`);
    }
    assert.deepEqual(await statusOf(fixture), { ours: "3" });
  },
);

scenario(
  "setStatus sends no request for a status that is unchanged",
  async (fixture) => {
    await create(fixture);
    let runs = 0;
    const operator = fixture.operator();
    const controller = operator.register(Buoy, {
      reconcile: () => {
        runs++;
        return setStatus({ ours: "1" });
      },
    });
    await fixture.start(operator);
    await reconciled(fixture, 1);
    const before = fixture.requests.filter(({ method }) => method !== "GET");
    controller.trigger("default/a");
    await fixture.until(() => runs === 2);
    await fixture.settle();
    assert.equal(
      fixture.requests.filter(({ method }) => method !== "GET").length,
      before.length,
    );
  },
);

scenario(
  "setStatus removes old fields in the next run if their removal failed",
  async (fixture) => {
    await create(fixture);
    const first = await start(fixture, () => patchStatus({ message: "old" }));
    await reconciled(fixture, 1);
    await fixture.done(first.stop());
    let changes = 0;
    const { client, statuses } = interrupted(
      fixture,
      // The apply passes, and all attempts to remove the message fail.
      [2, 3, 4, 5, 6],
      () => meddle(fixture, { theirs: String(++changes) }),
    );
    await start(fixture, () => setStatus({ ours: "1" }), client);
    await fixture.until(() =>
      fixture.log.some(({ message }) => message.startsWith("Run failed"))
    );
    assert.deepEqual(statuses, [200, 409, 409, 409, 409, 409]);
    await fixture.until(async () =>
      (await statusOf(fixture)).message === undefined
    );
    assert.deepEqual(await statusOf(fixture), { ours: "1", theirs: "5" });
  },
);

for (const [name, write] of Object.entries(WRITES)) {
  scenario(
    `${name} of onError keeps the observed generation`,
    async (fixture) => {
      await create(fixture);
      const operator = fixture.operator();
      operator.register(Buoy, {
        reconcile({ spec }) {
          if (spec.value === "second") throw new Error("No quota");
          return setStatus({ ours: spec.value });
        },
        onError: (_buoy, error) => write({ message: String(error) }),
      });
      await fixture.start(operator);
      await reconciled(fixture, 1);
      await change(fixture, "second");
      await fixture.until(async () =>
        (await statusOf(fixture)).message !== undefined
      );
      const { status } = await fixture.client.get(Buoy, KEY);
      assert.deepEqual(status, {
        ...(name === "patchStatus" && { ours: "first" }),
        message: "Error: No quota",
        observedGeneration: 1,
      });
    },
  );
}

scenario(
  "setStatus of onError keeps the generation that the run itself has written",
  async (fixture) => {
    await create(fixture);
    const operator = fixture.operator();
    operator.register(Buoy, {
      async reconcile({ spec, metadata: { generation } }, ctx) {
        const status = { ours: spec.value, observedGeneration: generation };
        await ctx.patch(Buoy, KEY, { status }, { subresource: "status" });
        if (spec.value === "second") throw new Error("No quota");
      },
      onError: (_buoy, error) => setStatus({ message: String(error) }),
    });
    await fixture.start(operator);
    await reconciled(fixture, 1);
    await change(fixture, "second");
    await fixture.until(async () =>
      (await statusOf(fixture)).message !== undefined
    );
    const { status } = await fixture.client.get(Buoy, KEY);
    assert.equal(status?.observedGeneration, 2);
  },
);

/** Writes of a status by each method. */
const METHODS = {
  ...WRITES,
  "a JSON Patch": (status: Status) => patchStatus(status, { method: "json" }),
  "a replacement": (status: Status) =>
    patchStatus(status, { method: "replace" }),
};

for (const [name, write] of Object.entries(METHODS)) {
  scenario(
    `An observedGeneration in a status is kept by ${name}`,
    async (fixture) => {
      await create(fixture);
      await start(fixture, () => write({ observedGeneration: 7 }));
      await reconciled(fixture, 7);
      await change(fixture, "second");
      await fixture.settle();
      const { status, metadata } = await fixture.client.get(Buoy, KEY);
      assert.deepEqual([status, metadata.generation], [
        { observedGeneration: 7 },
        2,
      ]);
    },
  );

  scenario(
    `A status copied from the object observes the new generation by ${name}`,
    async (fixture) => {
      await create(fixture);
      await start(
        fixture,
        ({ status, spec }) => write({ ...status, ours: spec.value }),
      );
      await reconciled(fixture, 1);
      await change(fixture, "second");
      await reconciled(fixture, 2);
      assert.equal((await statusOf(fixture)).ours, "second");
    },
  );

  scenario(
    `After a timeout the status of onError is written by ${name}`,
    async (fixture) => {
      await create(fixture);
      const operator = fixture.operator();
      operator.register(Buoy, {
        reconcile: (_buoy, { signal }) =>
          new Promise<void>((_resolve, reject) =>
            signal.addEventListener("abort", () => reject(signal.reason))
          ),
        onError: (_buoy, error) =>
          write({ message: String(error) }).withoutRetry(),
      }, { timeout: "30s" });
      await fixture.start(operator);
      await fixture.until(async () => {
        const { message = "" } = await statusOf(fixture);
        return message.includes("longer than its timeout");
      });
    },
  );
}

for (const [name, write] of Object.entries(WRITES)) {
  scenario(
    `A status field of ${name} that another manager rewrites is named once`,
    async (fixture) => {
      await create(fixture);
      let runs = 0;
      const operator = fixture.operator();
      const controller = operator.register(Buoy, {
        reconcile: () => write({ ours: `${++runs}`, message: "kept" }),
      });
      await fixture.start(operator);
      await reconciled(fixture, 1);
      const fights = () =>
        fixture.log.filter(({ message }) =>
          message.startsWith("A status field changes")
        );
      for (let round = 2; round <= 8; round++) {
        assert.equal(fights().length, round <= 5 ? 0 : 1);
        await meddle(fixture, { ours: "theirs", theirs: "1" });
        await fixture.settle();
        controller.trigger("default/a");
        await fixture.until(async () =>
          (await statusOf(fixture)).ours === `${round}`
        );
        await fixture.settle();
      }
      const { level, fields } = fights()[0]!;
      assert.deepEqual([level, fields["field"], fields["manager"]], [
        "warn",
        ".status.ours",
        "other",
      ]);
      const { items } = await fixture.client.list(Event, {
        namespace: "default",
      });
      assert.deepEqual(
        items.filter(({ reason }) => reason === "StatusFieldFight")
          .map(({ message }) => message),
        [
          '.status.ours changes after each write: field manager "other" writes it, too',
        ],
      );
    },
  );
}

scenario(
  "A status field that only its controller changes is no fight",
  async (fixture) => {
    await create(fixture);
    let runs = 0;
    const operator = fixture.operator();
    const controller = operator.register(Buoy, {
      reconcile: () => patchStatus({ ours: `${++runs}` }),
    });
    await fixture.start(operator);
    for (let round = 1; round <= 8; round++) {
      await fixture.until(async () =>
        (await statusOf(fixture)).ours === `${round}`
      );
      await meddle(fixture, { theirs: `${round}` });
      await fixture.settle();
      controller.trigger("default/a");
    }
    await fixture.until(() => runs === 9);
    assert.deepEqual(
      fixture.log.filter(({ level }) => level === "warn"),
      [],
    );
  },
);

scenario(
  "patchStatus after a conflict does not change a new object of the same name",
  async (fixture) => {
    await create(fixture);
    const stored: string[] = [];
    let isFirst = true;
    const client = fixture.client.with([(next) => async (request) => {
      const isStatus = request.method === "PATCH" &&
        request.path.includes("/status");
      if (isStatus && isFirst) {
        isFirst = false;
        // The event of the deletion is late.
        fixture.faults.stallWatches({ resource: "buoys" });
        await fixture.client.delete(Buoy, KEY);
        await fixture.client.create(Buoy, {
          metadata: KEY,
          spec: { value: "second" },
        });
      }
      const response = await next(request);
      if (isStatus && response.status < 300) stored.push(`${request.body}`);
      return response;
    }]);
    const operator = fixture.operator({ client });
    operator.register(Buoy, {
      reconcile: ({ spec }) =>
        patchStatus({ ours: spec.value, conditions: [condition("Ours")] }),
    });
    await fixture.start(operator);
    await fixture.until(() =>
      fixture.log.some(({ message }) => message.startsWith("Run failed"))
    );
    fixture.faults.cutWatches({ resource: "buoys" });
    assert.equal((await reconciled(fixture, 1)).ours, "second");
    assert.deepEqual(stored.filter((body) => body.includes("first")), []);
  },
  { embedded: "it stalls watches" },
);
