import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { PROJECT } from "../support/child_process.ts";
import { type BrowserPage, withBrowserPage } from "../support/chromium.ts";
import { coracle, Program } from "../support/program.ts";
import { temporaryFolder } from "../support/temporary_folder.ts";
import { recordTime } from "../testing/replay/recorded_hour.ts";
import * as operators from "../testing/replay/shop_operators.ts";

const SHOTS = join(PROJECT, ".cache/screenshots/window");
const SCREENS = {
  wide: { width: 1280, height: 900 },
  narrow: { width: 390, height: 844 },
};

const folder = temporaryFolder();
let dev: Program;
let url: string;
before(async () => {
  const example = join(PROJECT, "examples/webpage");
  dev = new Program(
    coracle("dev", `${example}.ts`, "--apply", `${example}.yaml`),
    { env: { TMPDIR: folder } },
  );
  [, url = ""] = await dev.says(/In a browser: (http:\S+)/);
});
after(async () => {
  await dev.kill();
});

/** Opens the page of the operator, and the details of its object. */
async function openObject(page: BrowserPage): Promise<void> {
  await page.open(url);
  await page.click("#objects button");
  await page.until(
    "the workflow is drawn",
    `document.querySelector("#object svg rect") !== null`,
  );
}

/** Fails if the page asked others, or the browser reported an error. */
function assertQuiet({ requests, errors }: BrowserPage): void {
  assert.deepEqual(errors, []);
  const { origin } = new URL(url);
  assert.deepEqual(
    requests.filter((asked) =>
      !asked.startsWith(origin) && !asked.startsWith("data:")
    ),
    [],
  );
}

test("The window shows a workflow on wide and narrow screens, dark and light", async () => {
  await withBrowserPage(async (page) => {
    for (const [size, screen] of Object.entries(SCREENS)) {
      for (const dark of [false, true]) {
        await page.screen({ ...screen, dark });
        await openObject(page);
        const text = await page.evaluate<string>("document.body.innerText");
        for (const name of ["html", "server", "service", "ingress"]) {
          assert.match(text, new RegExp(`${name}\\n`));
        }
        assert.match(text, /apply v1 ConfigMap default\/hello/);
        assert.match(text, /status\.ready: false → true/);
        const shade = dark ? "dark" : "light";
        await page.screenshot(join(SHOTS, `workflow-${size}-${shade}.png`));
        const overflow = await page.evaluate<number>(
          "document.documentElement.scrollWidth - innerWidth",
        );
        assert.ok(overflow <= 0, `${size} is ${overflow} pixels too wide`);
        const column = await page.evaluate<number>(
          'document.querySelector("#histories td.cause").clientWidth',
        );
        assert.ok(column > 250, `${size}: causes have ${column} pixels`);
      }
    }
    assertQuiet(page);
  });
});

test("The window reconciles an object when its button is pressed", async () => {
  await withBrowserPage(async (page) => {
    await page.screen(SCREENS.wide);
    await openObject(page);
    await page.click("#histories button");
    await page.until(
      "the run is listed",
      `document.querySelector("#runs").innerText.includes("requested")`,
    );
    assertQuiet(page);
  });
});

test("The window pauses an object, shows that it is paused, and resumes it", async () => {
  await withBrowserPage(async (page) => {
    await page.screen(SCREENS.narrow);
    await openObject(page);
    for (
      const [button, state] of [["Pause", "paused"], [
        "Resume",
        "done",
      ]] as const
    ) {
      const buttons = `[...document.querySelectorAll("#histories button")]`;
      const own = `${buttons}.find((one) => one.innerText === "${button}")`;
      await page.until(`the button ${button} is there`, `${own} !== undefined`);
      await page.evaluate(`${own}.click()`);
      await page.until(
        `the object is ${state}`,
        `document.querySelector("#objects .dot").innerText === "${state}"`,
      );
      await page.screenshot(join(SHOTS, `${state}-narrow-light.png`));
    }
    assertQuiet(page);
  });
});

test("The window shows an outage that it has injected, and its end", async () => {
  await withBrowserPage(async (page) => {
    await page.screen(SCREENS.wide);
    await openObject(page);
    await page.click("#inject");
    await page.until(
      "the outage shows",
      `document.querySelector("#controllers .faults") !== null`,
    );
    const injected = "document.querySelector('#injected').innerText";
    assert.match(await page.evaluate(injected), /^Injected at .*: outage/);
    await page.screenshot(join(SHOTS, "outage-wide-light.png"));
    await page.until(
      "the outage is over",
      `document.querySelector("#controllers .faults") === null`,
    );
    assertQuiet(page);
  });
});

test("The window refuses a wrong token and says where to find the right one", async () => {
  await withBrowserPage(async (page) => {
    await page.open(`${new URL(url).origin}/#wrong`);
    await page.until(
      "the refusal shows",
      `document.querySelector("#notice").textContent.includes("token is wrong")`,
    );
  });
});

test("The window shows recorded runs, without memory and buttons that act", async () => {
  const path = join(folder, "runs");
  await recordTime({
    ...{ operator: operators.operator, shops: 2, kiosks: 0, minutes: 2 },
    record: () => ({ path }),
  });
  const ui = new Program(coracle("ui", "--recording", path));
  try {
    const [, url = ""] = await ui.says(/Open (http:\S+)/);
    await withBrowserPage(async (page) => {
      await page.screen({ ...SCREENS.narrow, dark: false });
      await page.open(url);
      await page.click("#objects button");
      await page.until(
        "the runs are shown",
        `document.querySelectorAll("#histories tbody tr").length > 1`,
      );
      const text = await page.evaluate<string>("document.body.innerText");
      assert.match(text, /Cannot open shop-\d: nobody is there/);
      assert.match(
        text,
        /apply \/api\/v1\/namespaces\/default\/configmaps\/shop-/,
      );
      assert.doesNotMatch(text, /Reconcile now|resident memory/);
      await page.screenshot(join(SHOTS, "recording.png"));
      assert.deepEqual(page.errors, []);
    });
  } finally {
    await ui.kill();
  }
});
