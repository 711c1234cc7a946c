import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import type { Context, Kind } from "@coracle/operator/core";
import {
  states,
  type StatesObject,
  type StatesOptions,
} from "@coracle/operator/workflows";
import { type Kill, PhasedStore } from "./phased_store.ts";

type State = "StartingBlue" | "Blue" | "StartingGreen" | "Green" | "Aborted";
type Shop = StatesObject<State> & { spec: { image: string } };

const Shop: Kind<Shop> = {
  group: "example.com",
  version: "v1",
  kind: "Shop",
  plural: "shops",
  scope: "Namespaced",
};

/** A blue-green deployment: the other colour starts before this one ends. */
class ShopWorld extends PhasedStore<Shop> {
  readonly running: Map<string, string> = new Map();
  traffic: string | undefined;
  readonly broken: Set<string> = new Set();
  readonly actions: string[] = [];

  constructor(image: string) {
    super({ spec: { image } } as Shop, () =>
      states<Shop>(Shop, {
        initial: "StartingBlue",
        clock: this.clock,
        states: {
          StartingBlue: this.#starting("blue", "Blue"),
          Blue: this.#active("blue", "StartingGreen"),
          StartingGreen: this.#starting("green", "Green"),
          Green: this.#active("green", "StartingBlue"),
          Aborted: {
            rest: true,
            run: ({ object }) =>
              this.broken.has(object.spec.image)
                ? undefined
                : this.traffic === "green"
                ? "StartingBlue"
                : "StartingGreen",
          },
        },
      }));
  }

  #starting(colour: string, then: State): StatesOptions<Shop, State>["states"][
    State
  ] {
    return {
      within: "10m",
      late: "Aborted",
      run: ({ object: { spec: { image } } }) => {
        if (this.running.get(colour) !== image) {
          this.effect(() => {
            this.actions.push(`start ${colour} ${image}`);
            this.running.set(colour, image);
          });
        }
        return this.broken.has(image) ? undefined : then;
      },
    };
  }

  #active(colour: string, other: State): StatesOptions<Shop, State>["states"][
    State
  ] {
    return {
      rest: true,
      run: ({ object: { spec: { image } } }) => {
        if (this.traffic !== colour) {
          this.effect(() => {
            this.actions.push(`switch to ${colour}`);
            this.traffic = colour;
          });
        }
        return this.running.get(colour) === image ? undefined : other;
      },
    };
  }
}

test("states goes from colour to colour, and rests where it may", async () => {
  const world = new ShopWorld("one");
  await world.settle();
  assert.equal(world.stored.status?.state, "Blue");
  assert.equal(world.ready().status, "True");
  world.edit({ image: "two" });
  await world.settle();
  assert.equal(world.stored.status?.state, "Green");
  assert.equal(world.stored.status?.observedGeneration, 2);
  assert.deepEqual(world.actions, [
    "start blue one",
    "switch to blue",
    "start green two",
    "switch to green",
  ]);
});

test("states gives a state up at its deadline, which a restart does not move", async () => {
  const world = new ShopWorld("one");
  await world.settle();
  world.broken.add("two");
  world.edit({ image: "two" });
  await world.settle();
  assert.equal(world.stored.status?.state, "StartingGreen");
  assert.equal(world.ready().reason, "StartingGreen");
  const { deadline } = world.stored.status!;
  await world.clock.advance(5 * 60_000);
  world.restart();
  await world.settle();
  assert.equal(world.stored.status?.deadline, deadline);
  await world.clock.advance(5 * 60_000);
  await world.settle();
  assert.equal(world.stored.status?.state, "Aborted");
  assert.equal(world.traffic, "blue", "nobody noticed");
  assert.match(world.events.join(), /Warning TooLate/);
});

test("states ends in the same state wherever the operator is killed", async () => {
  const play = async (kill: Kill) => {
    const world = new ShopWorld("one");
    world.kill = kill;
    await world.settle();
    world.edit({ image: "two" });
    await world.settle();
    return world;
  };
  const undisturbed = await play({ after: Infinity, side: "before" });
  for (let after = 0; after < undisturbed.effects; after++) {
    for (const side of ["before", "after"] as const) {
      const world = await play({ after, side });
      assert.deepEqual(world.actions, undisturbed.actions);
      assert.equal(world.stored.status?.state, "Green");
    }
  }
});

test("states refuses names that it does not know and halves of a deadline", () => {
  const run = () => undefined;
  type One = StatesObject<"A" | "B">;
  const kind = { ...Shop } as unknown as Kind<One>;
  const make = (options: object) => () => states<One>(kind, options as never);
  assert.throws(make({ initial: "C", states: { A: { run } } }), RangeError);
  assert.throws(
    make({ initial: "A", states: { A: { run, within: "1s" } } }),
    /belong together/,
  );
  assert.throws(
    make({ initial: "A", states: { A: { run, within: "1s", late: "Z" } } }),
    RangeError,
  );
  assert.throws(
    make({ initial: "A", states: { A: { run, within: "x", late: "A" } } }),
    /"within" must be a duration: .* received "x"/,
  );
});

test("states gives each state a deadline of its own", async () => {
  type Step = StatesObject<"One" | "Two" | "Late">;
  let isOver = false;
  const world: PhasedStore<Step> = new PhasedStore<Step>(
    {},
    () =>
      states<Step>(Shop as unknown as Kind<Step>, {
        initial: "One",
        clock: world.clock,
        states: {
          One: {
            within: "1h",
            late: "Late",
            run: () => isOver ? "Two" : undefined,
          },
          Two: { within: "2h", late: "Late", run: () => undefined },
          Late: { rest: true, run: () => undefined },
        },
      }),
  );
  const hours = () =>
    (world.stored.status!.deadline! - world.clock.wallTime()) / 3_600_000;
  await world.pass();
  assert.equal(hours(), 1);
  await world.clock.advance(1_800_000);
  isOver = true;
  await world.pass();
  assert.equal(world.stored.status?.state, "Two");
  assert.equal(hours(), 2);
});

test("states enters its initial state from one that does not exist, with a warning", async () => {
  const world = new ShopWorld("one");
  world.write({ state: "Purple" as State });
  await world.pass();
  assert.equal(world.stored.status?.state, "Blue");
  assert.deepEqual(world.events.filter((event) => /^Warning/.test(event)), [
    'Warning StatusInvalid: The state "Purple" does not exist',
  ]);
});

type Step = StatesObject<"Work" | "Rest" | "Late">;
type StepRun = (run: { readonly object: Step }) => "Work" | "Rest" | undefined;

/** World of an object that works for at most an hour and then rests. */
function stepWorld(
  work: StepRun,
  rest: StepRun = () => undefined,
): PhasedStore<Step> {
  const world: PhasedStore<Step> = new PhasedStore<Step>(
    {},
    () =>
      states<Step>(Shop as unknown as Kind<Step>, {
        initial: "Work",
        clock: world.clock,
        states: {
          Work: { within: "1h", late: "Late", run: work },
          Rest: { rest: true, run: rest },
          Late: { rest: true, run: () => undefined },
        },
      }),
  );
  return world;
}

test("states runs again at once, after 10 s, or after 60 s at rest", async () => {
  const next: ("Work" | "Rest" | undefined)[] = [undefined, "Work", "Rest"];
  const world = stepWorld(() => next.shift());
  assert.equal(await world.pass(), 10_000);
  const { deadline } = world.stored.status!;
  await world.clock.advance(60_000);
  assert.equal(await world.pass(), 10_000, "it stays in its state");
  assert.equal(world.stored.status?.deadline, deadline);
  assert.equal(await world.pass(), 0);
  assert.equal(await world.pass(), 60_000);
});

test("states observes a generation when it rests for it, and not before", async () => {
  const next: ("Rest" | undefined)[] = [undefined, "Rest"];
  const world = stepWorld(() => next.shift());
  await world.pass();
  assert.equal(world.stored.status?.observedGeneration, undefined);
  assert.equal(world.ready().status, "False");
  await world.pass();
  assert.equal(world.stored.status?.observedGeneration, 1);
  world.edit({});
  await world.pass();
  assert.equal(world.stored.status?.observedGeneration, 2);
});

test("states leaves a state at its deadline, and not a moment before", async () => {
  const world = stepWorld(() => undefined);
  await world.pass();
  await world.clock.advance(3_600_000 - 1);
  await world.pass();
  assert.equal(world.stored.status?.state, "Work");
  await world.clock.advance(1);
  assert.equal(await world.pass(), 0);
  assert.equal(world.stored.status?.state, "Late");
});

test("states limits a deadline that a user has edited, and removes one at rest", async () => {
  const world = stepWorld(() => undefined);
  await world.pass();
  const { deadline = 0 } = world.stored.status!;
  for (const edited of [deadline + 1, Infinity, "soon"]) {
    world.write({ state: "Work", deadline: edited as number });
    await world.pass();
    assert.equal(world.stored.status?.deadline, deadline);
  }
  world.write({ state: "Work", deadline: deadline - 1 });
  await world.pass();
  assert.equal(world.stored.status?.deadline, deadline - 1);
  world.write({ state: "Rest", deadline: 1 });
  await world.pass();
  assert.equal(world.stored.status?.deadline, undefined);
});

test("states begins again with a status that is no state", async () => {
  for (const status of ["text", ["Rest"], null]) {
    const world = stepWorld(() => undefined);
    world.write(status as never);
    await world.pass();
    assert.equal(world.stored.status?.state, "Work", JSON.stringify(status));
  }
  for (const state of ["constructor", 5, ["Rest"]]) {
    const world = stepWorld(() => undefined);
    world.write({ state: state as "Work" });
    await world.pass();
    assert.equal(world.stored.status?.state, "Work");
    assert.match(world.events.join(), /StatusInvalid: .* does not exist/);
  }
});

test("states goes on from what it wrote, also with an older copy of the object", async () => {
  const ran: string[] = [];
  const world = stepWorld(() => {
    ran.push("work");
    return "Rest";
  }, () => void ran.push("rest"));
  const old = structuredClone(world.stored);
  await world.pass();
  world.stored = old;
  await world.pass();
  assert.deepEqual(ran, ["work", "rest"]);
});

test("states writes with the signal of its run", async () => {
  const { signal } = new AbortController();
  const given: unknown[] = [];
  const status = {
    replace(_kind: unknown, object: Step, options: { signal?: AbortSignal }) {
      given.push(options.signal);
      return Promise.resolve(object);
    },
  };
  const clock = new VirtualClock();
  const reconciler = states<Step>(Shop as unknown as Kind<Step>, {
    initial: "Rest",
    states: {
      Work: { run: () => undefined },
      Rest: { rest: true, run: () => undefined },
      Late: { run: () => undefined },
    },
  });
  const object: Step = { metadata: { name: "a", uid: "1", generation: 1 } };
  const ctx = { client: { status }, signal, clock } as object as Context<Step>;
  await reconciler.reconcile(object, ctx);
  assert.deepEqual(given, [signal]);
  const [ready] = object.status?.conditions ?? [];
  // The clock is that of the operator, unless the options have another.
  assert.equal(ready?.lastTransitionTime, "2026-01-01T00:00:00Z");
});

/** Object of two states; one ends late, and what its states have seen. */
class TwoStates extends PhasedStore<Shop> {
  readonly seen: unknown[] = [];

  constructor() {
    super({ spec: { image: "a" } } as Shop, () =>
      states<Shop>(Shop, {
        initial: "StartingBlue",
        clock: this.clock,
        states: {
          StartingBlue: {
            within: "1m",
            late: "Blue",
            run: () => {
              this.seen.push(this.stored.status?.state);
              return undefined;
            },
          },
          Blue: { rest: true, run: () => undefined },
          StartingGreen: { run: () => undefined },
          Green: { run: () => undefined },
          Aborted: { run: () => undefined },
        },
      }));
  }
}

test("states writes a state before its function runs, and runs none that is late", async () => {
  const world = new TwoStates();
  await world.pass();
  assert.deepEqual(world.seen, ["StartingBlue"]);
  assert.equal(
    world.ready().message,
    "In the transitional state StartingBlue",
  );
  await world.clock.advance(60_000);
  await world.pass();
  assert.equal(world.seen.length, 1);
  assert.equal(world.stored.status?.state, "Blue");
  await world.pass();
  assert.equal(world.ready().message, "In the resting state Blue");
  const types = world.stored.status?.conditions?.map(({ type }) => type);
  assert.deepEqual(types, ["Ready"]);
});

test("states refuses a state for late ends without a time limit", () => {
  const run = () => undefined;
  const others = {
    StartingBlue: { run },
    StartingGreen: { run },
    Green: { run },
  };
  assert.throws(
    () =>
      states<Shop>(Shop, {
        initial: "Blue",
        states: { ...others, Aborted: { run }, Blue: { run, late: "Green" } },
      }),
    /"within" and "late" belong together: received only late Green/,
  );
});
