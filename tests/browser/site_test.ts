import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { brokenLinks } from "../../site/links.ts";
import { serve, type SiteServer } from "../../site/serve.ts";
import { type BrowserPage, withBrowserPage } from "../support/chromium.ts";
import { PROJECT } from "../support/child_process.ts";

const DIST = join(PROJECT, "site/dist");
const SHOTS = join(PROJECT, ".cache/screenshots/site");

const WIDE = { width: 1280, height: 900 };
const NARROW = { width: 390, height: 844 };
const PAGES: Readonly<Record<string, string>> = {
  start: "/",
  guide: "/guides/status",
  tutorial: "/tutorial/reconciler",
  upgrades: "/guides/upgrades",
  numbers: "/guides/performance",
  migrate: "/migrate/josdk",
  reference: "/reference/operator/Operator",
};

let server: SiteServer;
let origin: string;
before(async () => {
  server = await serve(DIST, 0);
  origin = `http://127.0.0.1:${server.port}`;
});
after(() => server.stop());

/** Fails if the page asked others, or the browser reported an error. */
function assertQuiet({ requests, errors }: BrowserPage): void {
  assert.deepEqual(errors, []);
  assert.deepEqual(
    requests.filter((url) => !url.startsWith(origin) && !/^data:/.test(url)),
    [],
  );
}

test("Every link of the built site leads to a page and a place in it", () => {
  assert(globSync("**/*.html", { cwd: DIST }).length > 100);
  assert.deepEqual(brokenLinks(DIST), []);
});

test("Pages of the site fit wide and narrow screens, dark and light", async () => {
  await withBrowserPage(async (page) => {
    for (const [name, path] of Object.entries(PAGES)) {
      for (const [size, screen] of Object.entries({ WIDE, NARROW })) {
        for (const dark of [false, true]) {
          await page.screen({ ...screen, dark });
          await page.open(origin + path);
          await page.until(
            `${path} runs`,
            `document.querySelector("h1") !== null &&
              document.documentElement.classList.contains("dark") === ${dark}`,
          );
          if (name === "upgrades") {
            await page.until(
              "the graph is drawn",
              `document.querySelector(".mermaid svg") !== null`,
            );
          }
          const overflow = await page.evaluate<number>(
            "document.documentElement.scrollWidth - innerWidth",
          );
          const shade = dark ? "dark" : "light";
          const file = `${name}-${size.toLowerCase()}-${shade}.png`;
          await page.screenshot(join(SHOTS, file));
          assert(overflow <= 0, `${file} is ${overflow} pixels too wide`);
          const wide = await page.evaluate<number>(
            `Math.max(0, ...[...document.querySelectorAll(".language-sh pre")]
              .map((one) => one.scrollWidth - one.clientWidth))`,
          );
          assert(wide <= 0, `${file}: a command is ${wide} pixels too wide`);
        }
      }
    }
    assertQuiet(page);
  });
});

test("Menus of the site lead to the index of each section", async () => {
  await withBrowserPage(async (page) => {
    await page.screen(WIDE);
    await page.open(`${origin}/guides/status`);
    const links = (selector: string) =>
      page.evaluate<string[]>(
        `[...document.querySelectorAll("${selector} a")].map((a) =>
          a.pathname)`,
      );
    const sections = ["/tutorial/", "/guides/", "/gallery/", "/migrate/"];
    const menu = await links(".VPNavBarMenu");
    assert.deepEqual(menu, [...sections, "/reference/"]);
    const sidebar = await links(".VPSidebar");
    for (const section of sections) assert(sidebar.includes(section), section);
    assertQuiet(page);
  });
});

test("A page of the site that does not exist says so", async () => {
  await withBrowserPage(async (page) => {
    await page.open(`${origin}/guides/nothing`);
    const title = `document.querySelector("h1")?.innerText`;
    await page.until("the page says so", `/No such page/i.test(${title})`);
  });
});

test("The search of the site finds guides and symbols without a network", async () => {
  await withBrowserPage(async (page) => {
    await page.screen(WIDE);
    await page.open(origin);
    await page.click(".VPNavBarSearch button");
    await page.until(
      "the search is open",
      `document.activeElement?.id === "localsearch-input"`,
    );
    for (
      const [text, found] of [
        ["finalizer", "/guides/cleanup"],
        ["defineKind", "/reference/operator/defineKind"],
      ] as const
    ) {
      await page.evaluate("document.activeElement.select()");
      await page.type(text);
      await page.screenshot(join(SHOTS, `search-${text}.png`));
      await page.until(
        `${text} is found`,
        `[...document.querySelectorAll(".results a")].some((a) =>
          a.pathname.startsWith(${JSON.stringify(found)}))`,
      );
    }
    assertQuiet(page);
  });
});

test("Pages of the site have a policy that allows no foreign script", async () => {
  await withBrowserPage(async (page) => {
    await page.open(origin);
    await page.evaluate(`new Promise((resolve) => {
      const script = document.createElement("script");
      script.textContent = "globalThis.intruded = true";
      document.body.append(script);
      fetch("https://example.com/").catch(() => {}).then(resolve);
    })`);
    assert.equal(await page.evaluate("globalThis.intruded ?? false"), false);
    assert(page.errors.some((error) => /Content Security Policy/.test(error)));
  });
  for (const file of globSync("**/*.html", { cwd: DIST })) {
    const html = readFileSync(join(DIST, file), "utf8");
    assert.match(html, /http-equiv="Content-Security-Policy"/, file);
    assert.doesNotMatch(html, /script-src[^;]*'unsafe/, file);
  }
});

test("llms.txt lists pages that exist", async () => {
  const text = await (await fetch(`${origin}/llms.txt`)).text();
  const links = [...text.matchAll(/\]\((\/[^)]+)\)/g)].map(([, link]) => link);
  assert(links.length > 15, text);
  for (const link of links) {
    const response = await fetch(origin + link);
    await response.body?.cancel();
    assert.equal(response.status, 200, link);
  }
});
