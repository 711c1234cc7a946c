import assert from "node:assert/strict";
import { test } from "node:test";
import { VirtualClock } from "@coracle/dev";
import { ADDED, QUEUE_CAUSES } from "../../../core/controller/cause.ts";
import { fc, REPLAYED } from "../../support/property.ts";
import {
  Priority,
  type QueueItem,
  SchedulingQueue,
} from "../../../core/queue/scheduling_queue.ts";

/** Model of a key. */
interface KeyModel {
  /** Pending run; undefined if none exists. */
  pending: { priority: Priority; cause: unknown; events: number } | undefined;
  /** Order in which it started to wait; undefined while held or running. */
  order: number | undefined;
  /** Whether it waits for its first run by its place. */
  isFirst: boolean;
  /** Current run, and whether its key was removed since. */
  run: { item: QueueItem; isRemoved: boolean } | undefined;
  timer: number;
  /** Whether the timer is an interval. */
  isInterval: boolean;
  rescheduleAt: number;
  hold: number;
}

interface Model {
  readonly keys: Map<string, KeyModel>;
  now: number;
  order: number;
}

interface Real {
  readonly queue: SchedulingQueue;
  readonly clock: VirtualClock;
}

const { first: FIRST, retry, interval, reschedule } = QUEUE_CAUSES;

/** Places of keys, on two pages; the others have none. */
const PLACES: ReadonlyMap<string, number> = new Map([["a", 0], ["b", 5_000]]);

function placeOf(key: string): number {
  return PLACES.get(key) ?? -1;
}

function keyAt(place: number): string | undefined {
  return [...PLACES].find(([, known]) => known === place)?.[0];
}

function keyModel(model: Model, key: string): KeyModel {
  let state = model.keys.get(key);
  if (state === undefined) {
    state = {
      pending: undefined,
      order: undefined,
      isFirst: false,
      run: undefined,
      timer: Infinity,
      isInterval: false,
      rescheduleAt: Infinity,
      hold: 0,
    };
    model.keys.set(key, state);
  }
  return state;
}

function letWait(model: Model, state: KeyModel): void {
  if (
    state.pending && !state.run && state.order === undefined &&
    state.hold <= model.now
  ) state.order = model.order++;
}

function addTo(
  model: Model,
  key: string,
  priority: Priority,
  cause: unknown,
): void {
  const state = keyModel(model, key);
  if (state.isFirst) {
    state.isFirst = false;
    state.order = model.order++;
  }
  if (state.pending === undefined) {
    state.pending = { priority, cause, events: 1 };
  } else {
    state.pending.events++;
    if (priority < state.pending.priority) {
      state.pending.priority = priority;
      state.pending.cause = cause;
      if (state.order !== undefined) state.order = model.order++;
    }
  }
  letWait(model, state);
}

/** Whether a key needs more than its place. */
function isBusy(state: KeyModel, now: number): boolean {
  return (state.pending !== undefined && !state.isFirst) ||
    state.run !== undefined || state.rescheduleAt < Infinity ||
    state.hold > now || (state.timer < Infinity && !state.isInterval);
}

function check(model: Model, real: Real): void {
  const states = [...model.keys.values()];
  const waiting = states.filter((state) => state.order !== undefined);
  const running = states.filter((state) => state.run !== undefined);
  assert.equal(real.queue.waiting, waiting.length, "waiting");
  assert.equal(real.queue.running, running.length, "running");
  assert.ok(real.clock.pendingTimers <= 1, "one timer");
  for (const { run, pending } of running) {
    const { item, isRemoved } = run as NonNullable<KeyModel["run"]>;
    assert.equal(item.isRemoved, isRemoved, "removed");
    assert.equal(item.added > 0, pending !== undefined, "dirty");
  }
  const busy = states.filter((state) => isBusy(state, model.now));
  assert.equal(real.queue.size, busy.length, "an idle key costs nothing");
}

type Command = fc.AsyncCommand<Model, Real>;

class Add implements Command {
  readonly key: string;
  readonly priority: Priority;
  readonly cause: number;

  constructor(key: string, priority: Priority, cause: number) {
    this.key = key;
    this.priority = priority;
    this.cause = cause;
  }

  check = () => true;

  run(model: Model, real: Real): Promise<void> {
    const { key, priority, cause } = this;
    addTo(model, key, priority, cause);
    real.queue.add(key, { priority, cause }, placeOf(key));
    check(model, real);
    return Promise.resolve();
  }

  toString = () => `add(${this.key}, ${this.priority})`;
}

class AddFirst implements Command {
  readonly key: string;

  constructor(key: string) {
    this.key = key;
  }

  check = () => true;

  run(model: Model, real: Real): Promise<void> {
    const { key } = this;
    const state = keyModel(model, key);
    if (placeOf(key) < 0 || isBusy(state, model.now)) {
      addTo(model, key, FIRST.priority, FIRST.cause);
    } else if (!state.isFirst) {
      state.pending = { ...FIRST, events: 1 };
      state.isFirst = true;
      state.timer = Infinity;
      state.order = model.order++;
    }
    real.queue.add(key, FIRST, placeOf(key));
    check(model, real);
    return Promise.resolve();
  }

  toString = () => `addFirst(${this.key})`;
}

class Take implements Command {
  check = () => true;

  run(model: Model, real: Real): Promise<void> {
    const waiting = [...model.keys].filter(([, { order }]) =>
      order !== undefined
    );
    const item = real.queue.take();
    assert.equal(item !== undefined, waiting.length > 0, "no add is lost");
    if (item !== undefined) {
      const { key } = item;
      const state = keyModel(model, key);
      const { pending, order } = state;
      assert.ok(pending && order !== undefined, `${key} was not waiting`);
      for (
        const [other, { pending: rival, order: place, isFirst }] of waiting
      ) {
        assert.ok(
          isFirst || state.isFirst || rival?.priority !== pending.priority ||
            (place as number) >= order,
          `${other} came before ${key}`,
        );
      }
      assert.equal(item.add.priority, pending.priority);
      assert.equal(item.add.cause, pending.cause);
      assert.equal(item.events, pending.events);
      state.pending = state.order = undefined;
      state.isFirst = false;
      state.run = { item, isRemoved: false };
    }
    check(model, real);
    return Promise.resolve();
  }

  toString = () => "take()";
}

/** Ends a run, after setting deadlines as a controller does. */
class Done implements Command {
  readonly pick: number;
  readonly isInterval: boolean;
  readonly timer: number | undefined;
  readonly rescheduleAt: number | undefined;
  readonly hold: number | undefined;

  constructor(
    pick: number,
    isInterval: boolean,
    delays: readonly [
      number | undefined,
      number | undefined,
      number | undefined,
    ],
  ) {
    this.pick = pick;
    this.isInterval = isInterval;
    [this.timer, this.rescheduleAt, this.hold] = delays;
  }

  check = (model: Readonly<Model>) =>
    [...model.keys.values()].some((state) => state.run !== undefined);

  run(model: Model, real: Real): Promise<void> {
    const running = [...model.keys.values()].filter((state) => state.run);
    const state = running[this.pick % running.length] as KeyModel;
    const { item, isRemoved } = state.run as NonNullable<KeyModel["run"]>;
    const place = placeOf(item.key);
    if (!isRemoved && (this.timer !== undefined || place >= 0)) {
      state.timer = model.now + (this.timer ?? Infinity);
      state.isInterval = this.isInterval && place >= 0;
      const cause = state.isInterval ? "interval" : "retry";
      real.queue.setTimer(item, state.timer, cause, place);
    }
    if (!isRemoved && this.rescheduleAt !== undefined) {
      state.rescheduleAt = model.now + this.rescheduleAt;
      real.queue.reschedule(item, state.rescheduleAt);
    }
    if (!isRemoved && this.hold !== undefined) {
      state.hold = model.now + this.hold;
      real.queue.hold(item, state.hold);
    }
    state.run = undefined;
    letWait(model, state);
    real.queue.done(item);
    check(model, real);
    return Promise.resolve();
  }

  toString = () =>
    `done(${this.pick}, timer ${this.timer}, rescheduled ${this.rescheduleAt}, hold ${this.hold})`;
}

class Remove implements Command {
  readonly key: string;

  constructor(key: string) {
    this.key = key;
  }

  check = () => true;

  run(model: Model, real: Real): Promise<void> {
    const state = keyModel(model, this.key);
    state.pending = state.order = undefined;
    state.isFirst = false;
    state.timer = state.rescheduleAt = Infinity;
    state.hold = 0;
    if (state.run) state.run.isRemoved = true;
    real.queue.remove(this.key, placeOf(this.key));
    check(model, real);
    return Promise.resolve();
  }

  toString = () => `remove(${this.key})`;
}

class Advance implements Command {
  readonly duration: number;

  constructor(duration: number) {
    this.duration = duration;
  }

  check = () => true;

  async run(model: Model, real: Real): Promise<void> {
    const end = model.now + this.duration;
    const start = model.order;
    for (;;) {
      const due = Math.min(
        ...[...model.keys.values()].map((state) =>
          Math.min(
            state.timer,
            state.rescheduleAt,
            state.hold > model.now ? state.hold : Infinity,
          )
        ),
      );
      if (due > end) break;
      model.now = due;
      for (const [key, state] of model.keys) {
        const rescheduled = state.rescheduleAt <= due;
        const timer = state.timer <= due;
        if (rescheduled) state.rescheduleAt = Infinity;
        if (timer) state.timer = Infinity;
        const add = state.isInterval ? interval : retry;
        if (rescheduled) {
          addTo(model, key, Priority.timer, reschedule.cause);
        } else if (timer) addTo(model, key, Priority.timer, add.cause);
        else letWait(model, state);
      }
    }
    model.now = end;
    await real.clock.advance(this.duration);
    // Keys that start to wait in one command may do so in any order.
    for (const state of model.keys.values()) {
      if (state.order !== undefined && state.order >= start) {
        state.order = start;
      }
    }
    check(model, real);
  }

  toString = () => `advance(${this.duration})`;
}

test("SchedulingQueue equals a simple model of its guarantees", async () => {
  const key = fc.constantFrom("a", "b", "c", "d");
  const priority = fc.constantFrom<Priority>(0, 1, 2);
  const delay = fc.option(fc.integer({ min: 1, max: 50 }), { nil: undefined });
  const commands = [
    fc.tuple(key, priority, fc.nat(9)).map(([k, p, c]) => new Add(k, p, c)),
    key.map((k) => new AddFirst(k)),
    fc.constant(new Take()),
    fc.tuple(fc.nat(3), fc.boolean(), fc.tuple(delay, delay, delay))
      .map(([pick, isInterval, delays]) => new Done(pick, isInterval, delays)),
    key.map((k) => new Remove(k)),
    fc.nat(30).map((duration) => new Advance(duration)),
  ];
  await fc.assert(
    fc.asyncProperty(
      fc.commands(commands, {
        maxCommands: 80,
        size: "max",
        ...REPLAYED,
      }),
      async (sequence) => {
        const clock = new VirtualClock({ quietTurns: 1 });
        const causes = QUEUE_CAUSES;
        const queue = new SchedulingQueue({ clock, causes, keyAt });
        const real = { clock, queue };
        const model: Model = { keys: new Map(), now: 0, order: 0 };
        await fc.asyncModelRun(() => ({ model, real }), sequence);
      },
    ),
    { numRuns: 300 },
  );
});

test("SchedulingQueue ends each of many pauses when it is due, whatever came before", async () => {
  const key = fc.nat(60).map((number) => `default/key-${number}`);
  const due = fc.option(fc.integer({ min: 1, max: 20 }));
  const steps = fc.array(fc.tuple(key, due), { maxLength: 200, size: "max" });
  await fc.assert(fc.asyncProperty(steps, async (steps) => {
    const clock = new VirtualClock({ quietTurns: 1 });
    const queue = new SchedulingQueue({ clock, causes: QUEUE_CAUSES });
    const dues = new Map<string, number>();
    for (const [key, due] of steps) {
      dues.delete(key);
      if (due === null) queue.remove(key);
      else {
        dues.set(key, due);
        queue.add(key, ADDED);
        const item = queue.take() ?? assert.fail(`${key} does not wait`);
        assert.equal(item.key, key);
        queue.setTimer(item, due, "retry");
        queue.done(item);
      }
      assert.equal(queue.delayed, dues.size);
      assert.equal(queue.size, dues.size);
    }
    while (dues.size > 0) {
      const next = Math.min(...dues.values());
      await clock.advance(next - clock.now());
      const taken: string[] = [];
      for (let item; (item = queue.take()) !== undefined;) {
        taken.push(item.key);
        queue.done(item);
      }
      const expected = [...dues.keys()].filter((key) => dues.get(key) === next);
      assert.deepEqual(taken.toSorted(), expected.toSorted());
      for (const key of expected) dues.delete(key);
    }
    assert.deepEqual([queue.size, clock.pendingTimers], [0, 0]);
  }));
});
