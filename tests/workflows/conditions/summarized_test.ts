import assert from "node:assert/strict";
import {
  Failed,
  intervalSchedule,
  isReady,
  lintStatus,
  Stalled,
  Waiting,
} from "@coracle/operator/workflows";
import { eventSchedule } from "../../../workflows/conditions/reconcile_result.ts";
import {
  conditionText,
  conditionTypes,
  FETCHED,
  releaseScenario,
} from "../../support/release_fixture.ts";
import type { Release } from "../../support/release_kind.ts";

releaseScenario(
  "summarized ends a success with Ready, and the generation observed [F1]",
  async (release) => {
    const { fixture } = release;
    await release.play([() => {}]);
    const object = await release.read();
    assert.equal(
      conditionText(object, "Ready"),
      "True Succeeded: The object is in its desired state",
    );
    assert.deepEqual(conditionTypes(object), ["Ready"]);
    assert.equal(object.status?.observedGeneration, 1);
    assert.deepEqual(lintStatus(object), []);
    const from = fixture.requests.length;
    await fixture.advance(60_000 * 3);
    assert.equal(
      release.writes(from),
      0,
      "nothing changed, nothing is written",
    );
  },
);

releaseScenario(
  "summarized refuses a result of a step that is none",
  async (release) => {
    await release.play([() => ({ kind: "ConfigMap" }) as never]);
    assert.match(
      await release.ready(),
      /^False .*: Cannot use the result of a step: .* received an object/,
    );
  },
);

releaseScenario(
  "summarized says Reconciling before slow work, and only the once",
  async (release) => {
    const { fixture } = release;
    const seen: Release[] = [];
    await release.play([async () => {
      seen.push(await release.read());
    }]);
    const [first] = seen;
    assert.equal(
      conditionText(first!, "Reconciling"),
      "True Progressing: Reconciling generation 1",
    );
    assert.equal(
      conditionText(first!, "Ready"),
      "Unknown Progressing: Reconciling generation 1",
    );
    assert.deepEqual(lintStatus(first!, { inProgress: true }), []);
    await fixture.advance(60_000);
    assert.deepEqual(conditionTypes(seen[1]!), ["Ready"], "nothing is new");
  },
);

releaseScenario(
  "summarized reports a new generation before slow work, also after a failure",
  async (release) => {
    const { fixture } = release;
    const seen: string[] = [];
    await release.play([async () => {
      seen.push(conditionText(await release.read(), "Reconciling"));
      throw new Error("no route");
    }]);
    await release.ask({ version: "2" });
    await fixture.until(() =>
      seen.at(-1) === "True Progressing: Reconciling generation 2"
    );
  },
);

releaseScenario(
  "progress is written immediately and keeps Ready unless the object changed",
  async (release) => {
    const { fixture } = release;
    const seen: (readonly string[])[] = [];
    let runs = 0;
    await release.play([async (pass) => {
      const message = "fetching https://host/x?token=abc";
      await (runs++ < 2
        ? pass.progress(message)
        : pass.progress("repairing", { reason: "Drifted", drift: true }));
      const object = await release.read();
      seen.push(
        ["Reconciling", "Ready"].map((type) => conditionText(object, type)),
      );
    }]);
    for (let run = 2; run <= 3; run++) {
      await fixture.advance(60_000);
      assert.equal(runs, run);
      assert.match(await release.ready(), /^True Succeeded: /);
    }
    assert.deepEqual(seen, [
      [
        "True Progressing: fetching https://host/x",
        "Unknown Progressing: fetching https://host/x",
      ],
      [
        "True Progressing: fetching https://host/x",
        "True Succeeded: The object is in its desired state",
      ],
      ["True Drifted: repairing", "Unknown Drifted: repairing"],
    ]);
    assert.deepEqual(conditionTypes(await release.read()), ["Ready"]);
  },
);

releaseScenario(
  "A failure under a condition of its own is what Ready says, until it is over [F14]",
  async (release) => {
    const { fixture } = release;
    let broken = true;
    await release.play([async (pass) => {
      await pass.failing({ type: "FetchFailed", reason: "Unreachable" }, () => {
        if (broken) throw new Error("no route to https://host/x?token=abc");
      });
      pass.set({
        type: "Stored",
        status: "True",
        reason: "Stored",
        message: "kept",
      });
    }], FETCHED);
    const failing = await release.read();
    assert.equal(
      conditionText(failing, "Ready"),
      "False Unreachable: no route to https://host/x",
    );
    assert.equal(
      conditionText(failing, "Reconciling"),
      "True ProgressingWithRetry: Reconciling generation 1",
    );
    assert.equal(failing.status?.observedGeneration, undefined);
    assert.deepEqual(lintStatus(failing, { abnormal: ["FetchFailed"] }), []);
    await fixture.until(async () => (await release.events()).length > 0);
    assert.deepEqual(await release.events(), [
      "Warning Unreachable: no route to https://host/x",
    ]);

    const from = fixture.requests.length;
    await fixture.advance(750);
    assert.equal(release.writes(from), 0, "the same failure is written once");
    broken = false;
    await fixture.advance(1_500);
    assert.equal(await release.ready(), "True Stored: kept");
    assert.deepEqual(conditionTypes(await release.read()), ["Ready", "Stored"]);
  },
);

releaseScenario(
  "Stalled is not tried again before the object changes [F5]",
  async (release) => {
    const { fixture } = release;
    let runs = 0;
    await release.play([({ object }) => {
      runs++;
      if (object.spec.version === "1") {
        throw new Stalled("BadVersion", "1 is not to be had");
      }
    }]);
    const object = await release.read();
    assert.equal(
      conditionText(object, "Stalled"),
      "True BadVersion: 1 is not to be had",
    );
    assert.equal(
      conditionText(object, "Ready"),
      "False BadVersion: 1 is not to be had",
    );
    assert.equal(object.status?.observedGeneration, 1);
    assert.deepEqual(lintStatus(object), []);
    await fixture.advance(3_600_000);
    assert.equal(runs, 1);
    await release.ask({ version: "2" });
    await fixture.settle();
    assert.equal(
      await release.ready(),
      "True Succeeded: The object is in its desired state",
    );
    assert.deepEqual(conditionTypes(await release.read()), ["Ready"]);
  },
);

releaseScenario(
  "Waiting comes back when it says, and is no failure [F6]",
  async (release) => {
    const { fixture } = release;
    let runs = 0;
    await release.play([() => {
      if (++runs < 3) {
        throw new Waiting("DependencyNotReady", "db is not ready", {
          after: 30_000,
        });
      }
    }]);
    assert.equal(
      await release.ready(),
      "False DependencyNotReady: db is not ready",
    );
    assert(release.isQuiet);
    await fixture.advance(29_000);
    assert.equal(runs, 1);
    await fixture.advance(1_000);
    assert.equal(runs, 2);
    await fixture.advance(30_000);
    assert(isReady((await release.read()).status!.conditions!));
  },
);

releaseScenario(
  "Waiting without a delay waits for the interval though Ready is False [X7]",
  async (release) => {
    const { fixture } = release;
    let runs = 0;
    await release.play([() => {
      runs++;
      throw new Waiting("NotYet", "in a while");
    }]);
    await fixture.advance(59_000);
    assert.equal(runs, 1, "no failure, no retry");
    await fixture.advance(1_000);
    assert.equal(runs, 2);
    assert.equal(await release.ready(), "False NotYet: in a while");
  },
);

releaseScenario(
  "An error under no name is Failed, and is tried for ever [F7]",
  async (release) => {
    const { fixture } = release;
    let runs = 0;
    await release.play([() => {
      runs++;
      throw new RangeError("out of paper");
    }]);
    assert.equal(await release.ready(), "False Failed: out of paper");
    await fixture.advance(8 * 3_600_000);
    assert(runs > 30 && runs < 60, `with pauses of up to 15 minutes: ${runs}`);
  },
);

releaseScenario(
  "A pace that is no schedule stalls the object",
  async (release) => {
    await release.play([() => {}], { schedule: () => "1m" as never });
    assert.match(
      await release.ready(),
      /^False InvalidSchedule: .* an object with next: received a string$/,
    );
  },
);

releaseScenario(
  "A pace that cannot be read stalls the object, behind what the steps say [F5]",
  async (release) => {
    const { fixture } = release;
    let error: Error | undefined;
    await release.play([() => {
      if (error !== undefined) throw error;
    }], {
      schedule: ({ spec }) => intervalSchedule(spec.version),
    });
    assert.match(
      await release.ready(),
      /^False InvalidSchedule: .* received "1"$/,
    );
    error = new Stalled("Other", "more important");
    await release.ask({ version: "2" });
    await fixture.until(async () =>
      await release.ready() === "False Other: more important"
    );
    error = undefined;
    await release.ask({ version: "3m" });
    await fixture.until(async () => (await release.ready()).startsWith("True"));
  },
);

releaseScenario(
  "A harmless failure ends the pass in peace [F8]",
  async (release) => {
    await release.play([() => {
      throw new Failed("NothingToDo", "as it was", {
        harmless: true,
        event: "None",
      });
    }]);
    const object = await release.read();
    assert.deepEqual(conditionTypes(object), ["Ready"]);
    assert.equal(object.status?.observedGeneration, 1);
    assert.deepEqual(await release.events(), []);
  },
);

releaseScenario(
  "A step that asks for another run ends the pass, which comes at once [F4]",
  async (release) => {
    const { fixture } = release;
    const calls: string[] = [];
    await release.play([
      () => {
        calls.push("first");
        return calls.length === 1 ? "requeue" : "success";
      },
      () => {
        calls.push("second");
      },
    ], { schedule: () => eventSchedule() });
    await fixture.advance(1);
    assert.deepEqual(calls, ["first", "first", "second"]);
    assert(isReady((await release.read()).status!.conditions!));
  },
);

releaseScenario(
  "Every pass of a flapping reconciler leaves a status without contradictions [F38]",
  async (release) => {
    const { fixture } = release;
    let count = 0;
    const outcomes: (() => void)[] = [
      () => {},
      () => {
        throw new Waiting("NotYet", "wait");
      },
      () => {
        throw new Error("broken");
      },
      () => {
        throw new Stalled("Bad", "bad");
      },
      () => {
        throw new Failed("Harmless", "none", { harmless: true });
      },
    ];
    const findings: unknown[] = [];
    await release.play([() => outcomes[count++ % outcomes.length]!()]);
    for (let round = 0; round < 12; round++) {
      findings.push(...lintStatus(await release.read()));
      release.nudges.trigger(release.key);
      await fixture.advance(2_000);
    }
    assert(count >= 10);
    assert.deepEqual(findings, []);
  },
);
