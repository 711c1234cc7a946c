import { ADDED, QUEUE_CAUSES as causes } from "../core/controller/cause.ts";
import { SchedulingQueue } from "../core/queue/scheduling_queue.ts";
import { VirtualClock } from "../dev/testing/virtual_clock.ts";
import { type Bench, type Measure, verify } from "./support/bench.ts";
import { runRival } from "./support/built_rivals.ts";
import { loadRival } from "./support/rival.ts";
import { cpuTime, peakRss } from "./support/sampling.ts";
import { Widget, widgetOperator } from "./support/widgets.ts";

const COUNT = 1_000_000;
const HOUR = 3_600_000;

function makeKeys(): readonly string[] {
  return Array.from(
    { length: COUNT },
    (_, i) => `team-${i % 250}/app-${i.toString(36)}-67644bbf89-4vs5t`,
  );
}

/**
 * Runs an operation on every key.
 *
 * @returns Microseconds of processor time.
 */
async function step(work: () => unknown): Promise<number> {
  const from = cpuTime();
  await work();
  return cpuTime() - from;
}

/** Measure in nanoseconds per key. */
function perKey(name: string, time: number): Measure {
  return { unit: `ns/${name}`, value: 1000 * time / COUNT };
}

/** Measures of all operations together, which count. */
function inAll(time: number, operations: number): readonly Measure[] {
  return [
    { unit: "ns/operation", value: 1000 * time / (operations * COUNT) },
    { unit: "M operations/s", value: operations * COUNT / time },
  ];
}

async function coracle(): Promise<readonly Measure[]> {
  const keys = makeKeys();
  const clock = new VirtualClock();
  const queue = new SchedulingQueue({ clock, causes });
  const add = () => {
    for (const key of keys) queue.add(key, ADDED);
  };
  const takeAndDone = () => {
    for (let taken = 0, item; (item = queue.take()) !== undefined; taken++) {
      verify(item.key === keys[taken], "a key must come in its turn");
      queue.done(item);
    }
    verify(queue.size === 0, "each key must come once");
  };
  const delay = () => {
    keys.forEach((key, i) => {
      queue.add(key, ADDED);
      const item = queue.take();
      if (item === undefined) throw new Error("the key must wait");
      queue.setTimer(item, HOUR + i % 1_000, "retry");
      queue.done(item);
    });
    verify(queue.delayed === COUNT, "each key must have its time");
  };
  add();
  takeAndDone();
  const added = await step(add);
  const added2 = await step(add);
  verify(queue.waiting === COUNT, "a key that waits is not added twice");
  const taken = await step(takeAndDone);
  const delayed = await step(delay);
  return [
    ...inAll(added + added2 + taken, 4),
    perKey("add", added),
    perKey("re-add", added2),
    perKey("take and done", taken),
    perKey("delayed add", delayed),
    peakRss(),
  ];
}

/**
 * Subject: the queue of a started controller, whose runs do nothing. Its first
 * keys are those of a list; then each object has two events.
 */
async function throughController(): Promise<readonly Measure[]> {
  const operator = widgetOperator(COUNT);
  let runs = 0;
  let ended = Promise.withResolvers<void>();
  const controller = operator.register(Widget, {
    reconcile() {
      if (++runs % COUNT === 0) ended.resolve();
    },
  });
  const allRun = async (begin: () => unknown) => {
    ended = Promise.withResolvers();
    await begin();
    await ended.promise;
    // The last run has returned, but is not settled.
    await new Promise(setImmediate);
    verify(controller.health().waiting === 0, "no key must wait");
  };
  const listed = await step(() => allRun(() => operator.start()));
  const keys = [...controller.primaries.keys()];
  const triggerAll = () => keys.forEach((key) => controller.trigger(key));
  const events = await step(() =>
    allRun(() => {
      triggerAll();
      triggerAll();
      verify(controller.health().waiting === COUNT, "no key may wait twice");
    })
  );
  verify(runs === 2 * COUNT, `each key must run once a time: ${runs}`);
  await operator.stop();
  return [
    ...inAll(events, 4),
    perKey("object of the list, with its run", listed),
    perKey("two events, with their run", events),
    peakRss(),
  ];
}

/** Subject: the least that keys need in JavaScript, a `Map` that is set and read. */
async function mapAlone(): Promise<readonly Measure[]> {
  const keys = makeKeys();
  const waiting = new Map<string, number>();
  const add = () => {
    keys.forEach((key, i) => {
      if (waiting.get(key) === undefined) waiting.set(key, i);
    });
  };
  const takeAndDone = () => {
    for (const key of keys) {
      verify(waiting.get(key) !== undefined, "each key must be there");
      waiting.delete(key);
    }
  };
  add();
  takeAndDone();
  const added = await step(add);
  const added2 = await step(add);
  const taken = await step(takeAndDone);
  return [
    ...inAll(added + added2 + taken, 4),
    perKey("add", added),
    perKey("re-add", added2),
    perKey("take and done", taken),
    peakRss(),
  ];
}

/** Queue without keys, in which equal items may wait twice. */
interface PlainQueue {
  pause(): void;
  add(key: string): void;
  /**
   * Starts the queue.
   *
   * @returns Resolves when it is empty.
   */
  drain(): Promise<void>;
}

/** Subject: a queue that passes each key to `take`; none is added again. */
async function plain(
  make: (take: (key: string) => void) => PlainQueue,
): Promise<readonly Measure[]> {
  const keys = makeKeys();
  let taken = 0;
  const queue = make((key) =>
    verify(key === keys[taken++], "a key must come in its turn")
  );
  const round = async () => {
    taken = 0;
    queue.pause();
    const added = await step(() => {
      for (const key of keys) queue.add(key);
    });
    const done = await step(() => queue.drain());
    verify(taken === COUNT, "each key must come once");
    return { added, done };
  };
  await round();
  const { added, done } = await round();
  return [
    ...inAll(added + done, 3),
    perKey("add", added),
    perKey("take and done", done),
    peakRss(),
  ];
}

/** Part of fastq that is used. */
interface FastqModule {
  readonly default: (
    worker: (key: string, done: (error: null) => void) => void,
    concurrency: number,
  ) => {
    drain: () => void;
    pause(): void;
    resume(): void;
    push(key: string): void;
  };
}

/**
 * Subject fastq. Its workers must not end synchronously, or its stack
 * overflows.
 */
async function fastq(): Promise<readonly Measure[]> {
  const { default: make } = await loadRival<FastqModule>("fastq");
  return await plain((take) => {
    const queue = make((key, done) => {
      take(key);
      queueMicrotask(() => done(null));
    }, 1);
    return {
      pause: () => queue.pause(),
      add: (key) => queue.push(key),
      drain: () =>
        new Promise((resolve) => {
          queue.drain = resolve;
          queue.resume();
        }),
    };
  });
}

/** Part of p-queue that is used. */
interface PQueueModule {
  readonly default: new (options: { concurrency: number }) => {
    add(work: () => void): Promise<void>;
    pause(): void;
    start(): void;
    onIdle(): Promise<void>;
  };
}

/** Subject p-queue, in which each addition returns a promise. */
async function pQueue(): Promise<readonly Measure[]> {
  const { default: PQueue } = await loadRival<PQueueModule>("p-queue");
  return await plain((take) => {
    const queue = new PQueue({ concurrency: 1 });
    return {
      pause: () => queue.pause(),
      add: (key) => void queue.add(() => take(key)),
      drain() {
        queue.start();
        return queue.onIdle();
      },
    };
  });
}

export const bench: Bench = {
  name: "queue",
  what: "a million keys: added, added again, taken and done; and delayed",
  rounds: 2,
  subjects: [
    { name: "coracle", run: coracle },
    { name: "coracle, through a controller", run: throughController },
    { name: "Map alone", rival: true, run: mapAlone },
    { name: "fastq", rival: true, needs: "npm", run: fastq },
    { name: "p-queue", rival: true, needs: "npm", run: pQueue },
    {
      name: "client-go",
      rival: true,
      needs: "go",
      run: () => runRival("go", "queue", `${COUNT}`),
    },
  ],
};
