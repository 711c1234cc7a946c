import assert from "node:assert/strict";
import { test } from "node:test";
import type { Kind } from "../../../core/api/kind.ts";
import {
  states,
  type StatesObject,
  type StatesOptions,
} from "../../../workflows/phases/states.ts";
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
