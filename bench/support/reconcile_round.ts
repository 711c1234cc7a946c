import { setTimeout as sleep } from "node:timers/promises";
import type { Measure } from "./bench.ts";
import { ChangeLoad } from "./change_load.ts";
import type { LoadTarget } from "./load_target.ts";
import {
  cpuTimeOf,
  OperatorProcess,
  type OperatorUsage,
} from "./operator_process.ts";
import { median } from "./sampling.ts";

/** Interval and end of the wait until an operator has seen its last echo. */
const SETTLE_MS = 50;
const SETTLE_LIMIT_MS = 1_000;
/** Microseconds of processor time in an interval that count as idle. */
const IDLE_CPU = 2_500;

/** Operator to measure, and how long. */
export interface ReconcileRound {
  /** Command that starts the operator. */
  readonly command: readonly string[];
  readonly kubeconfig: string;
  readonly target: LoadTarget;
  /** Process of the API server. */
  readonly serverPid: number;
  readonly objects: number;
  /**
   * Number of storms before the measured ones, besides the first. A compiler at
   * run time, such as that of V8 or the JVM, needs some 15,000 reconciles.
   */
  readonly warmUp: number;
  /** Number of measured storms. */
  readonly storms: number;
  /** Number of changes one by one. */
  readonly single: number;
  /** Receives the processor time of each measured storm, per object. */
  readonly onStorm?: ((cpu: number) => void) | undefined;
}

function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.ceil(share * sorted.length) - 1] ?? NaN;
}

/** Usage of an operator once it does nothing. */
async function settled(operator: OperatorProcess): Promise<OperatorUsage> {
  let usage = await operator.ask("usage");
  for (let waited = 0; waited < SETTLE_LIMIT_MS; waited += SETTLE_MS) {
    const before = usage.cpu;
    await sleep(SETTLE_MS);
    usage = await operator.ask("usage");
    if (usage.cpu - before < IDLE_CPU) break;
  }
  return usage;
}

/** Processor time of the operator and the server, in microseconds per object. */
interface Cost {
  readonly operator: number;
  readonly server: number;
}

/** Measures what work costs. */
async function costOf(
  operator: OperatorProcess,
  { serverPid, objects }: ReconcileRound,
  work: () => Promise<unknown>,
): Promise<Cost> {
  const { cpu } = await settled(operator);
  const server = cpuTimeOf(serverPid);
  await work();
  const after = await settled(operator);
  return {
    operator: (after.cpu - cpu) / objects,
    server: (cpuTimeOf(serverPid) - server) / objects,
  };
}

/** Measures an operator that reconciles: it writes a status per changed spec. */
export async function measureOperator(
  round: ReconcileRound,
): Promise<readonly Measure[]> {
  const { command, warmUp, storms, single, onStorm } = round;
  const load = await ChangeLoad.open(round);
  // Every operator begins with one status to write per object.
  const { storm: first } = await load.changeAll();
  const start = performance.now();
  const firstStatus = load.firstAnswer();
  const operator = new OperatorProcess(command);
  const costs: Cost[] = [];
  const times: number[] = [];
  const each: number[] = [];
  try {
    await firstStatus;
    const firstMs = performance.now() - start;
    await first;
    const second = await costOf(operator, round, () => load.storm());
    for (let i = 1; i < warmUp; i++) await load.storm();
    for (let i = 0; i < storms; i++) {
      const cost = await costOf(operator, round, async () => {
        const storm = await load.storm();
        each.push(...storm.each);
        times.push(storm.all);
      });
      costs.push(cost);
      onStorm?.(cost.operator);
    }
    const alone = await load.oneByOne(single);
    const { peak } = await operator.ask("usage");
    return [
      { unit: "µs CPU/reconcile", value: median(costs.map((c) => c.operator)) },
      { unit: "µs CPU/reconcile, second storm", value: second.operator },
      { unit: "ms p50", value: percentile(alone, 0.5) },
      { unit: "ms p99", value: percentile(alone, 0.99) },
      { unit: "ms p50 in a storm", value: percentile(each, 0.5) },
      { unit: "ms p99 in a storm", value: percentile(each, 0.99) },
      {
        unit: "statuses/s in a storm",
        value: round.objects * 1000 / median(times),
      },
      { unit: "MiB peak RSS", value: peak },
      { unit: "ms to first status", value: firstMs },
      {
        unit: "µs CPU of the server/reconcile",
        value: median(costs.map((c) => c.server)),
      },
    ];
  } finally {
    load.close();
    await operator.stop();
  }
}

/**
 * Measures an operator with a finalizer: per object it adds it, writes the
 * status, and removes it when the object is deleted.
 */
export async function measureCleanup(
  round: ReconcileRound,
): Promise<readonly Measure[]> {
  const { command, objects, warmUp, storms, onStorm } = round;
  const load = await ChangeLoad.open(round);
  const operator = new OperatorProcess(command);
  const costs: Cost[] = [];
  const times: number[] = [];
  try {
    for (let i = 0; i <= warmUp; i++) await load.cycleAll();
    for (let i = 0; i < storms; i++) {
      const cost = await costOf(operator, round, async () => {
        times.push(await load.cycleAll());
      });
      costs.push(cost);
      onStorm?.(cost.operator);
    }
    const { peak } = await operator.ask("usage");
    return [
      { unit: "µs CPU/object", value: median(costs.map((c) => c.operator)) },
      { unit: "objects/s", value: objects * 1000 / median(times) },
      { unit: "MiB peak RSS", value: peak },
      {
        unit: "µs CPU of the server/object",
        value: median(costs.map((c) => c.server)),
      },
    ];
  } finally {
    load.close();
    await operator.stop();
  }
}

/** Measures a process that only writes the statuses, on request. */
export async function measureWriter(
  round: ReconcileRound,
): Promise<readonly Measure[]> {
  const { command, warmUp, storms, onStorm } = round;
  const operator = new OperatorProcess(command);
  const costs: Cost[] = [];
  const times: number[] = [];
  try {
    const write = (i: number) => operator.ask(`write ${Date.now()}-${i}`);
    for (let i = 0; i <= warmUp; i++) await write(i);
    for (let i = 0; i < storms; i++) {
      const cost = await costOf(operator, round, async () => {
        const from = performance.now();
        await write(i);
        times.push(performance.now() - from);
      });
      costs.push(cost);
      onStorm?.(cost.operator);
    }
    const { peak } = await operator.ask("usage");
    return [
      { unit: "µs CPU/reconcile", value: median(costs.map((c) => c.operator)) },
      {
        unit: "statuses/s in a storm",
        value: round.objects * 1000 / median(times),
      },
      { unit: "MiB peak RSS", value: peak },
      {
        unit: "µs CPU of the server/reconcile",
        value: median(costs.map((c) => c.server)),
      },
    ];
  } finally {
    await operator.stop();
  }
}
