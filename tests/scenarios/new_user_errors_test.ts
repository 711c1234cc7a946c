/**
 * The first mistakes that people make, and that each is reported by name and with
 * what to do.
 */
import assert from "node:assert/strict";
import { limitedClient } from "../support/limited_client.ts";
import { z } from "zod";
import {
  type Context,
  defineKind,
  keepFinalizer,
  loadOperatorConfig,
  patchStatus,
  removeFinalizer,
  untyped,
} from "@coracle/operator/core";
import { ConfigMap } from "@coracle/operator/kinds";
import { watch } from "@coracle/operator/sources";
import {
  Gadget,
  type OperatorFixture,
  scenario,
} from "../support/operator_fixture.ts";

/** Mistake with the required parts of its message. */
interface Mistake {
  /** Description of the mistake. */
  readonly what: string;
  readonly make: (fixture: OperatorFixture) => unknown;
  /** Required name of the wrong thing. */
  readonly names: RegExp;
  /** Required advice. */
  readonly advises: RegExp;
}

const nothing = { reconcile() {} };

/** Mistakes that are seen before anything is started. */
const AT_ONCE: readonly Mistake[] = [
  {
    what: "an option of the operator that there is not",
    make: (fixture) => fixture.operator({ namespace: "x" } as never),
    names: /there is no option "namespace"/,
    advises: /did you mean "namespaces"\?/,
  },
  {
    what: "a tracer that is none",
    make: (fixture) => fixture.operator({ tracer: {} as never }),
    names: /"tracer" must have startActiveSpan\(\)/,
    advises: /as those of OpenTelemetry do/,
  },
  {
    what: "a look at its life that nobody can take",
    make: (fixture) =>
      fixture.operator({ probes: { port: 0, live: true } as never }),
    names: /probes: "live"/,
    advises: /must be a function: received a boolean/,
  },
  {
    what: "an option of a controller that there is not",
    make: (fixture) =>
      fixture.operator().register(Gadget, nothing, { retries: 3 } as never),
    names: /controller "gadget": there is no option "retries"/,
    advises: /did you mean "retry"\?/,
  },
  {
    what: "an option within an option that there is not",
    make: (fixture) =>
      fixture.operator().register(
        Gadget,
        nothing,
        { retry: { attempts: 3 } } as never,
      ),
    names: /controller "gadget", retry: there is no option "attempts"/,
    advises: /did you mean "maxAttempts"\?/,
  },
  {
    what: "a duration in words",
    make: (fixture) =>
      fixture.operator().register(Gadget, nothing, {
        // @ts-expect-error: it is no duration
        timeout: "1 minute",
      }),
    names: /"timeout".*received "1 minute"/,
    advises: /text like "250ms", "10s", "5m", "1h30m"/,
  },
  {
    what: "a negative duration",
    make: (fixture) => fixture.operator({ syncTimeout: -1 }),
    names: /"syncTimeout".*received -1/,
    advises: /zero or more milliseconds/,
  },
  {
    what: "a duration of a result that is none",
    // @ts-expect-error: it is no duration
    make: () => patchStatus({}).rescheduleAfter("soon"),
    names: /"rescheduleAfter".*received "soon"/,
    advises: /text like "250ms"/,
  },
  {
    what: "two controllers with one name",
    make(fixture) {
      const operator = fixture.operator();
      operator.register(Gadget, nothing);
      operator.register(Gadget, nothing);
    },
    names: /the name is taken.*received "gadget"/,
    advises: /set another one with \{ name \}/,
  },
  {
    what: "two event sources with one name",
    make: (fixture) =>
      fixture.operator().register(Gadget, nothing, {
        sources: [watch(ConfigMap), watch(ConfigMap)],
      }),
    names: /received "v1 ConfigMap" twice/,
    advises: /event sources must have different names/,
  },
  {
    what: "a reconciler without reconcile",
    make: (fixture) => fixture.operator().register(Gadget, {} as never),
    names: /controller for Gadget.*received nothing/,
    advises: /needs a method "reconcile/,
  },
  {
    what: "a reconcile that is no function",
    make: (fixture) =>
      fixture.operator().register(Gadget, { reconcile: "yes" } as never),
    names: /controller for Gadget.*received a string/,
    advises: /needs a method "reconcile/,
  },
  {
    what: "a finalizer that the server would not take",
    make: (fixture) =>
      fixture.operator().register(Gadget, nothing, { finalizer: "gadget" }),
    names: /Cannot use a finalizer.*received "gadget"/,
    advises: /such as "gadgets\.example\.com\/finalizer"/,
  },
  {
    what: "two controllers that clean up the same objects with one finalizer",
    make(fixture) {
      const operator = fixture.operator();
      const reconciler = { ...nothing, cleanup() {} };
      operator.register(Gadget, reconciler, { name: "dns" });
      operator.register(Gadget, reconciler, { name: "bucket" });
    },
    names:
      /"bucket": it and "dns" clean up Gadget objects with the finalizer gadgets\.sample\.coracle\.dev\/finalizer/,
    advises: /set another one with \{ finalizer \}/,
  },
  {
    what: "two definitions of one kind in an operator",
    make(fixture) {
      const operator = fixture.operator();
      const kind = (spec: z.ZodObject) =>
        defineKind({ group: "a.dev", version: "v1", kind: "Twice", spec });
      operator.register(kind(z.object({})), nothing);
      // An equal definition replaces nothing.
      operator.register(kind(z.object({})), nothing, { name: "equal" });
      operator.register(kind(z.object({ b: z.int() })), nothing, { name: "b" });
    },
    names: /"b": its definition of Twice would replace that of "twice"/,
    advises: /define the kind once/,
  },
  {
    what: "the runs of what is no object",
    make(fixture) {
      const operator = fixture.operator();
      operator.register(Gadget, nothing);
      operator.why("a/b/c");
    },
    names: /Cannot read an object key.*received "a\/b\/c"/,
    advises: /must be "name" or "namespace\/name"/,
  },
  {
    what: "a longest pause below the first",
    make: (fixture) =>
      fixture.operator().register(Gadget, nothing, { retry: { max: "500ms" } }),
    names: /"retry\.max".*received 500/,
    advises: /at least "retry\.initial", by default 1s/,
  },
  {
    what: "a cleanup where deletions are handed to reconcile",
    make: (fixture) =>
      fixture.operator().register(Gadget, { ...nothing, cleanup() {} }, {
        allEvents: true,
      }),
    names: /"allEvents".*a cleanup cannot be combined/,
    advises: /hands deletions to reconcile/,
  },
  {
    what: "a visit after the finalizer is gone",
    make: () => removeFinalizer().rescheduleAfter("10s"),
    names: /Cannot reschedule a cleanup that removes the finalizer/,
    advises: /use keepFinalizer\(\)\.rescheduleAfter/,
  },
  {
    what: "the installation of a kind without a definition",
    make(fixture) {
      const kind = untyped({ group: "a.io", version: "v1", kind: "Thing" });
      fixture.operator().register(kind, nothing, { install: true });
    },
    names: /controller "thing".*received Thing/,
    advises: /only a kind of defineKind carries the definition/,
  },
  {
    what: "leader election beside sharding",
    make: (fixture) =>
      fixture.operator({
        leaderElection: { name: "a" },
        sharding: { name: "b" },
      }),
    names: /leave out "leaderElection"/,
    advises: /with "sharding" every replica runs its part/,
  },
];

/** Mistakes that are seen when something is started or read. */
const LATER: readonly Mistake[] = [
  {
    what: "an operator without a controller",
    make: (fixture) => fixture.operator().start(),
    names: /it has no controller/,
    advises: /register one first/,
  },
  {
    what: "a kind that the server does not serve",
    make(fixture) {
      const operator = fixture.operator();
      const status = z.object({});
      const kind = defineKind({
        group: "sample.coracle.dev",
        version: "v1",
        kind: "Stranger",
        spec: z.object({}),
        status,
      });
      operator.register(kind, nothing);
      return fixture.start(operator);
    },
    names: /sample\.coracle\.dev\/v1 Stranger: the server does not serve it/,
    advises: /install its CustomResourceDefinition.*\{ install: true \}/,
  },
  {
    what: "a missing right",
    async make(fixture) {
      const { client } = await limitedClient(fixture, []);
      const operator = fixture.operator({ client });
      operator.register(Gadget, nothing);
      return fixture.start(operator);
    },
    names: /sample\.coracle\.dev\/v1 Gadget: the right is missing/,
    advises:
      /ClusterRole with \{ apiGroups: \["sample\.coracle\.dev"\], resources: \["gadgets"\], verbs: \["get", "list", "watch"\] \}/,
  },
  {
    what: "a variable that configures nothing",
    make: () =>
      loadOperatorConfig({
        environment: { CORACLE_OPERATOR_SHUTDOWN_GRACES: "1s" },
      }),
    names: /received CORACLE_OPERATOR_SHUTDOWN_GRACES/,
    advises: /did you mean CORACLE_OPERATOR_SHUTDOWN_GRACE\?/,
  },
  {
    what: "a variable with a value of another type",
    make: () =>
      loadOperatorConfig({
        environment: { CORACLE_OPERATOR_CONCURRENCY: "many" },
      }),
    names: /CORACLE_OPERATOR_CONCURRENCY.*received "many"/,
    advises: /must be a number/,
  },
];

for (const { what, make, names, advises } of AT_ONCE) {
  scenario(`Refused immediately with advice: ${what}`, async (fixture) => {
    let message = "";
    try {
      await make(fixture);
    } catch (error) {
      message = String(error);
    }
    assert.match(message, names);
    assert.match(message, advises);
  });
}

for (const { what, make, names, advises } of LATER) {
  scenario(`Refused at the start with advice: ${what}`, async (fixture) => {
    await assert.rejects(
      async () => await make(fixture),
      (error: unknown) => {
        assert.match(String(error), names);
        assert.match(String(error), advises);
        return true;
      },
    );
  });
}

/** Mistakes of reconcilers, which the log of the run reports. */
const IN_RUNS: readonly (readonly [
  string,
  (ctx: Context<Gadget>) => unknown,
  RegExp,
  RegExp,
])[] = [
  [
    "a status with a field that there is not",
    () => patchStatus({ valeu: "x" } as never),
    /status of Gadget.*status\.valeu: there is no such field/,
    /did you mean "value"\?/,
  ],
  [
    "a status of another type",
    () => patchStatus({ count: "many" } as never),
    /status of Gadget.*status\.count: /,
    /change the status or the schema/,
  ],
  [
    "a result that is none",
    () => ({ value: "x" }),
    /result of "reconcile".*received an object with value$/,
    /must be noUpdate\(\), patchStatus/,
  ],
  [
    "the result of a cleanup",
    () => keepFinalizer(),
    /result of "reconcile"/,
    /must be noUpdate\(\), patchStatus/,
  ],
  [
    "an error that is returned",
    () => new Error("s3cret"),
    /result of "reconcile".*received an error$/,
    /must be noUpdate\(\), patchStatus/,
  ],
  [
    "the context as a result",
    (ctx) => ctx,
    /result of "reconcile".*received an object$/,
    /must be noUpdate\(\), patchStatus/,
  ],
];

for (const [what, returned, names, advises] of IN_RUNS) {
  scenario(`Reported in a run with advice: ${what}`, async (fixture) => {
    const operator = fixture.operator();
    operator.register(Gadget, {
      reconcile: (_gadget, ctx) => returned(ctx) as never,
    });
    await fixture.start(operator);
    await fixture.create("a");
    const failure = () =>
      fixture.log.find(({ message }) => message.startsWith("Run failed"));
    await fixture.until(() => failure() !== undefined);
    assert.match(String(failure()?.fields["error"]), names);
    assert.match(String(failure()?.fields["error"]), advises);
  });
}
