import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { PROJECT, runCommand } from "../../tests/support/child_process.ts";
import type { Measure, Subject } from "./bench.ts";
import { rivalCommand, type Toolchain } from "./built_rivals.ts";
import { DEPLOYED, program, type RuntimeName } from "./deployed.ts";
import {
  measureCleanup,
  measureOperator,
  measureWriter,
  type ReconcileRound,
} from "./reconcile_round.ts";

/** Operator of Greetings, and how it is measured. */
export interface Reconciler extends Omit<Subject, "run"> {
  measure(round: Omit<ReconcileRound, "command">): Promise<readonly Measure[]>;
}

type Measured = typeof measureOperator;

/** Source of the operators of `greeting_operators.ts`. */
export const OPERATOR_SOURCE: string = fileURLToPath(
  new URL("./greeting_operator.ts", import.meta.url),
);

/** Command of an operator, from its source or from a bundle of it. */
export function scriptCommand(
  name: string,
  { kubeconfig, objects }: Pick<ReconcileRound, "kubeconfig" | "objects">,
  options: {
    readonly runtime?: RuntimeName;
    readonly file: string;
    /** Further flags of the runtime. */
    readonly flags?: readonly string[] | undefined;
  },
): readonly string[] {
  const { file, flags = [], runtime = "node" } = options;
  const command = [...DEPLOYED[runtime], ...flags];
  return [...command, file, name, kubeconfig, String(objects)];
}

let bundle: Promise<string> | undefined;

/** Bundle of the operators, as users deploy theirs. */
async function bundled(): Promise<string> {
  const folder = join(PROJECT, ".cache", "bench", "operator");
  await runCommand([
    program("esbuild"),
    OPERATOR_SOURCE,
    "--bundle",
    "--splitting",
    "--format=esm",
    "--packages=external",
    "--platform=node",
    "--target=node22",
    `--outdir=${folder}`,
    "--out-extension:.js=.mjs",
    "--log-level=warning",
  ]);
  return join(folder, "greeting_operator.mjs");
}

/** Operator in TypeScript. */
function script(
  name: string,
  runtime: RuntimeName = "node",
  measured: Measured = measureOperator,
): Reconciler["measure"] {
  return async (round) => {
    const file = await (bundle ??= bundled());
    const command = scriptCommand(name, round, { runtime, file });
    return await measured({ ...round, command });
  };
}

/** Operator in another language. */
function built(
  toolchain: Toolchain,
  name: string,
  measured: Measured = measureOperator,
): Pick<Reconciler, "rival" | "needs" | "measure"> {
  return {
    rival: true,
    needs: toolchain,
    measure: (round) => {
      const { kubeconfig, objects } = round;
      const command = rivalCommand(
        toolchain,
        name,
        kubeconfig,
        String(objects),
      );
      return measured({ ...round, command });
    },
  };
}

const CORACLE =
  "patchStatus (merge patch); HTTP/1.1, undici; bundled by esbuild, flags and environment of its Deployment and Dockerfile";

/** Operator of Greetings whose runs are recorded. */
export const RECORDED: Reconciler = {
  name: "coracle, recorded",
  measure: script("coracle-recorded"),
};

/** Operators of Greetings and baselines: the subjects of `reconcile`. */
export const RECONCILERS: readonly Reconciler[] = [
  { name: "coracle", measure: script("coracle"), settings: CORACLE },
  {
    name: "coracle, Deno",
    measure: script("coracle", "deno"),
    settings: CORACLE,
  },
  {
    name: "coracle, Bun",
    measure: script("coracle", "bun"),
    settings: CORACLE,
  },
  {
    name: "bare PATCH",
    rival: true,
    measure: script("patch", "node", measureWriter),
    settings:
      "no operator: ten merge patches at once by Coracle's transport on Node, each answer parsed by JSON.parse",
  },
  {
    name: "bare watch and PATCH",
    rival: true,
    measure: script("watch-patch"),
    settings:
      "no framework: one watch by Coracle's transport on Node, read by a regular expression, and a merge patch per change, ten at once, answers dropped",
  },
  {
    name: "client-node, by hand",
    rival: true,
    measure: script("client-node"),
    settings:
      "patchNamespacedCustomObjectStatus (merge patch); HTTP/1.1, agent of the client",
  },
  {
    name: "controller-runtime",
    ...built("go", "reconcile"),
    settings:
      "Status().Update, GenerationChangedPredicate, QPS -1; HTTP/2, one connection",
  },
  {
    name: "bare Update",
    ...built("go", "update", measureWriter),
    settings:
      "no operator: ten Status().Update at once by controller-runtime's client",
  },
  {
    name: "JOSDK",
    ...built("mvn", "reconcile"),
    settings:
      "5.2.3, UpdateControl.patchStatus (server-side apply), generation aware; fabric8 7.5.2 over Vert.x, OpenJDK with its defaults",
  },
  {
    name: "kube-rs",
    ...built("cargo", "reconcile"),
    settings:
      "5.0.0, patch_status (server-side apply), predicates::generation; HTTP/1.1, pool of hyper",
  },
];

/** Operators of Greetings with a finalizer: the subjects of `cleanup`. */
export const CLEANERS: readonly Reconciler[] = [
  {
    name: "coracle",
    measure: script("coracle-cleanup", "node", measureCleanup),
  },
  {
    name: "coracle, Deno",
    measure: script("coracle-cleanup", "deno", measureCleanup),
  },
  {
    name: "coracle, Bun",
    measure: script("coracle-cleanup", "bun", measureCleanup),
  },
  {
    name: "controller-runtime",
    ...built("go", "cleanup", measureCleanup),
    settings: "controllerutil.AddFinalizer and RemoveFinalizer, Update",
  },
  {
    name: "JOSDK",
    ...built("mvn", "cleanup", measureCleanup),
    settings: "Cleaner",
  },
  {
    name: "kube-rs",
    ...built("cargo", "cleanup", measureCleanup),
    settings: "kube::runtime::finalizer",
  },
];

/** Operators of apps with ten dependents: the subjects of `dependents`. */
export const WORKFLOW_RUNNERS: readonly Reconciler[] = [
  { name: "coracle", measure: script("coracle-workflow") },
  { name: "coracle, Deno", measure: script("coracle-workflow", "deno") },
  { name: "coracle, Bun", measure: script("coracle-workflow", "bun") },
];
