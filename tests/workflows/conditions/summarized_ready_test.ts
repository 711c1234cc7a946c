import assert from "node:assert/strict";
import { type Condition, isReady } from "@coracle/operator/workflows";
import {
  conditionText,
  FETCHED,
  releaseScenario,
} from "../../support/release_fixture.ts";
import { Release } from "../../support/release_kind.ts";

releaseScenario(
  "Without a word about it, Ready sums up what the steps have set [F30]",
  async (release) => {
    const words: [boolean, "True" | "False"] = [true, "False"];
    await release.play([async (pass) => {
      const [broken, stored] = words;
      pass.set({ type: "Stored", status: stored, reason: "Storage" });
      await pass.failing({ type: "FetchFailed", reason: "Unreachable" }, () => {
        if (broken) throw new Error("no route");
      });
    }]);
    assert.equal(await release.ready(), "False Unreachable: no route");
    words[0] = false;
    await release.fixture.advance(750);
    assert.equal(await release.ready(), "False Storage: ");
    words[1] = "True";
    await release.fixture.advance(1_500);
    assert.equal(await release.ready(), "True Storage: ");
  },
);

releaseScenario(
  "A gate that is False speaks for Ready [F18]",
  async (release) => {
    await release.play([(pass) => {
      pass.set({
        type: "Verified",
        status: "False",
        reason: "NoSignature",
        message: "unsigned",
      });
      pass.set({ type: "Stored", status: "True", reason: "Stored" });
    }], { ...FETCHED, gates: ["Verified"] });
    assert.equal(await release.ready(), "False NoSignature: unsigned");
  },
);

releaseScenario(
  "A success that leaves Ready False is a failure, where the cadence says so [F16]",
  async (release) => {
    const { fixture } = release;
    let runs = 0;
    await release.play([(pass) => {
      runs++;
      pass.set({ type: "Stored", status: "False", reason: "NotYet" });
    }], FETCHED);
    await fixture.advance(750);
    assert.equal(runs, 2);
    assert.equal(await release.ready(), "False NotYet: ");
  },
);

releaseScenario(
  "An error makes Ready False, unless a condition explains why it is [F20]",
  async (release) => {
    const { fixture } = release;
    let isExplained = false;
    const fail = () => {
      throw new Error("no route");
    };
    const condition = { type: "FetchFailed", reason: "Unreachable" };
    await release.play([
      (pass) => isExplained ? pass.failing(condition, fail) : fail(),
    ]);
    assert.equal(await release.ready(), "False Failed: no route");
    isExplained = true;
    await fixture.until(async () =>
      await release.ready() === "False Unreachable: no route"
    );
  },
);

releaseScenario(
  "Two conditions are summed up apart, and only Ready fails the pass [F17]",
  async (release) => {
    const { fixture } = release;
    let runs = 0;
    await release.play([(pass) => {
      runs++;
      pass.set({ type: "Scanned", status: "False", reason: "Old" });
      pass.set({ type: "Stored", status: "True", reason: "Stored" });
    }], {
      summaries: [
        { target: "Ready", of: ["Stored"] },
        { target: "Healthy", of: ["Scanned"] },
      ],
    });
    await fixture.advance(59_000);
    assert.equal(runs, 1);
    const object = await release.read();
    assert.equal(conditionText(object, "Ready"), "True Stored: ");
    assert.equal(conditionText(object, "Healthy"), "False Old: ");
  },
);

releaseScenario(
  "A condition of somebody else survives every pass [F34]",
  async (release) => {
    const { fixture } = release;
    await release.play([(pass) => {
      pass.object.status!.revision = pass.object.spec.version;
    }], { summaries: [{ target: "Ready", of: ["Stored"] }] });
    const foreign: Condition = {
      type: "Scanned",
      status: "True",
      reason: "Clean",
      message: "see https://scan/?id=1",
      lastTransitionTime: "2026-01-01T00:00:00Z",
    };
    const { status } = await release.read();
    await fixture.client.status.patch(Release, release.key, {
      status: { conditions: [...status!.conditions!, foreign] },
    });
    await release.ask({ version: "2" });
    await fixture.settle();
    const after = await release.read();
    assert.equal(after.status?.revision, "2");
    assert.deepEqual(after.status?.conditions?.at(-1), foreign);
  },
);

releaseScenario(
  "A processor that throws does not fail the pass, and one may change the object",
  async (release) => {
    const { fixture } = release;
    await release.play([() => {}], {
      processors: [
        () => {
          throw new Error("processor");
        },
        ({ object, result }) => {
          object.status!.revision = result;
        },
      ],
    });
    const object = await release.read();
    assert.equal(object.status?.revision, "success");
    assert(isReady(object.status!.conditions!));
    assert(
      fixture.log.some(({ message }) =>
        message === "A result processor threw an error"
      ),
    );
  },
);
