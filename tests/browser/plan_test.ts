import assert from "node:assert/strict";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { test } from "node:test";
import { planPage } from "../../dev/cli/window/plan_page.ts";
import type { PlannedChange } from "../../dev/testing/plan/plan_report.ts";
import { PROJECT } from "../support/child_process.ts";
import { withBrowserPage } from "../support/chromium.ts";
import { temporaryFolder, writeText } from "../support/temporary_folder.ts";

const SHOTS = join(PROJECT, ".cache/screenshots/plan");
const HOSTILE = "</script><img src=x onerror=\"document.title='owned'\">";
const SCREENS = {
  wide: { width: 1280, height: 900, dark: false },
  narrow: { width: 390, height: 844, dark: true },
};

const changes = Array.from({ length: 10_000 }, (_, index): PlannedChange => ({
  action: index % 100 === 0 ? "delete" : "change",
  ...{ apiVersion: "apps/v1", kind: "Deployment", namespace: "shop" },
  name: index === 7 ? HOSTILE : `web-${index}`,
  cause: "apply by shop",
  owner: `Shop shop/s-${Math.floor(index / 10)}`,
  fields: [{
    path: ".spec.template.spec.containers[web].image",
    before: `registry.example/${"long".repeat(30)}:${index}`,
    after: index === 7 ? HOSTILE : `web:${index}`,
    takenFrom: ["autoscaler"],
  }],
}));

const page = planPage({
  cluster: {
    ...{ at: 0, server: "v1.36.3", objects: 20_000 },
    ...{ resources: [], unread: [], hidesSecrets: true },
  },
  simulated: { duration: 3_600_000, quiet: true },
  changes,
  ...{
    loops: [],
    fights: [],
    fetches: [],
    events: [],
    missingRights: [],
    answers: [],
  },
  failures: [{ error: HOSTILE, count: 2, objects: ["shop/s-1"] }],
  ...{ unread: [], notes: [] },
});

test("A plan as a page: a tree by owner, a filter and fields, on two screens", async () => {
  const file = writeText(temporaryFolder(), "plan.html", page);
  const { href } = pathToFileURL(file);
  await withBrowserPage(async (browser) => {
    for (const [size, screen] of Object.entries(SCREENS)) {
      await browser.screen(screen);
      await browser.open(href);
      const text = () => browser.evaluate<string>("document.body.innerText");
      const filter = (words: string) =>
        browser.evaluate(
          `(byId("filter").value = ${JSON.stringify(words)}, draw())`,
        );
      assert.match(await text(), /10,000 objects would change: 20,000 objects/);
      assert.match(await text(), /10000 of 10000 objects/);
      // Ten thousand changes are drawn in steps.
      const nodes = await browser.evaluate<number>(
        'document.querySelectorAll("*").length',
      );
      assert.ok(nodes < 2_000, `${nodes} elements`);
      await filter("onerror");
      assert.match(await text(), /1 of 10000 objects/);
      assert.ok((await text()).includes(HOSTILE), "the name is shown as it is");
      await filter("shop/web-4321");
      assert.match(await text(), /Shop shop\/s-432 1/);
      assert.match(await text(), /\+ "web:4321"/);
      assert.match(await text(), /taken from autoscaler/);
      const dash = await browser.evaluate<number>(`(() => {
        const text = document.querySelector(".before").firstChild;
        const topOf = (at) => {
          const range = document.createRange();
          range.setStart(text, at);
          range.setEnd(text, at + 1);
          return range.getBoundingClientRect().top;
        };
        return topOf(4) - topOf(0);
      })()`);
      assert.equal(
        dash,
        0,
        `${size}: the value begins in the line of its sign`,
      );
      await browser.screenshot(join(SHOTS, `field-${size}.png`));
      const overflow = await browser.evaluate<number>(
        "document.documentElement.scrollWidth - innerWidth",
      );
      assert.ok(overflow <= 0, `${size} is ${overflow} pixels too wide`);
      await filter("");
      const hidden = await browser.evaluate<number>(`(() => {
        const field = byId("filter");
        const { font, paddingLeft, paddingRight } = getComputedStyle(field);
        const pen = document.createElement("canvas").getContext("2d");
        pen.font = font;
        return pen.measureText(field.placeholder).width -
          (field.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight));
      })()`);
      assert.ok(
        hidden <= 0,
        `${size}: ${hidden} pixels of the hint are cut off`,
      );
      await browser.screenshot(join(SHOTS, `tree-${size}.png`));
    }
    assert.equal(await browser.evaluate("document.title"), "Plan – Coracle");
    assert.deepEqual(browser.errors, []);
    assert.deepEqual(
      browser.requests.filter((url) => url !== href && url !== "data:,"),
      [],
    );
  });
});
