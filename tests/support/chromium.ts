/**
 * Chromium without a window, driven over the DevTools protocol: pages, their
 * requests and errors, and screenshots.
 *
 * @module
 */

import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import process from "node:process";

/** Limit of a wait in milliseconds. */
const LIMIT_MS = 30_000;

// deno-lint-ignore no-explicit-any
type Json = any;

/** Path of Chromium, by `CHROMIUM` or in the path; undefined if none exists. */
export function chromiumPath(): string | undefined {
  const given = process.env["CHROMIUM"];
  if (given !== undefined) return given;
  const names = ["chromium", "chromium-browser", "google-chrome", "chrome"];
  return (process.env["PATH"] ?? "").split(delimiter)
    .flatMap((folder) => names.map((name) => join(folder, name)))
    .find((path) => existsSync(path));
}

/** Page of a browser. */
export class BrowserPage {
  /** URLs that the page requested. */
  readonly requests: string[] = [];
  /** Exceptions, console errors and violations of the content policy. */
  readonly errors: string[] = [];
  readonly #send: (method: string, params?: Json) => Promise<Json>;

  constructor(send: (method: string, params?: Json) => Promise<Json>) {
    this.#send = send;
  }

  /** Records an event of the protocol. */
  record(method: string, params: Json): void {
    if (method === "Network.requestWillBeSent") {
      this.requests.push(params.request.url);
    } else if (method === "Runtime.exceptionThrown") {
      const { text, exception } = params.exceptionDetails;
      this.errors.push(exception?.description ?? text);
    } else if (method === "Log.entryAdded" && params.entry.level === "error") {
      this.errors.push(`${params.entry.text} ${params.entry.url ?? ""}`);
    } else if (
      method === "Runtime.consoleAPICalled" && params.type === "error"
    ) {
      this.errors.push(
        params.args.map(({ value, description }: Json) => value ?? description)
          .join(" "),
      );
    }
  }

  /** Opens a URL and waits until it has loaded. */
  async open(url: string): Promise<void> {
    const { errorText } = await this.#send("Page.navigate", { url });
    if (errorText !== undefined) throw new Error(`${url}: ${errorText}`);
    await this.until(
      `${url} has loaded`,
      `document.readyState === "complete" && location.href !== "about:blank"`,
    );
  }

  /** Value of a JavaScript expression in the page, as JSON. */
  async evaluate<T>(expression: string): Promise<T> {
    const { result, exceptionDetails } = await this.#send("Runtime.evaluate", {
      expression,
      awaitPromise: true,
      returnByValue: true,
    });
    if (exceptionDetails !== undefined) {
      throw new Error(
        `${expression}: ${exceptionDetails.exception?.description}`,
      );
    }
    return result.value as T;
  }

  /** Waits until an expression of the page is truthy, and returns its value. */
  async until<T>(what: string, expression: string): Promise<T> {
    const end = performance.now() + LIMIT_MS;
    for (;;) {
      const value = await this.evaluate<T>(expression).catch((error) => {
        // A navigation replaces the context in between.
        if (/context|navigat/i.test(String(error))) return undefined;
        throw error;
      });
      if (value) return value;
      if (performance.now() > end) {
        const errors = this.errors.join("\n");
        throw new Error(`Not within ${LIMIT_MS} ms: ${what}\n${errors}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  /** Clicks an element as a script does. */
  async click(selector: string): Promise<void> {
    const text = JSON.stringify(selector);
    await this.until(
      `${selector} is there`,
      `document.querySelector(${text}) !== null`,
    );
    await this.evaluate(`document.querySelector(${text}).click()`);
  }

  /** Types text into the element that has the focus. */
  async type(text: string): Promise<void> {
    await this.#send("Input.insertText", { text });
  }

  /** Sets size and preferred colours of the screen. */
  async screen(
    { width, height, dark = false }: {
      readonly width: number;
      readonly height: number;
      readonly dark?: boolean;
    },
  ): Promise<void> {
    await this.#send("Emulation.setDeviceMetricsOverride", {
      width,
      height,
      deviceScaleFactor: 1,
      mobile: width < 600,
    });
    await this.#send("Emulation.setEmulatedMedia", {
      features: [{
        name: "prefers-color-scheme",
        value: dark ? "dark" : "light",
      }],
    });
  }

  /** Writes what the screen shows into a PNG file. */
  async screenshot(file: string): Promise<void> {
    const { data } = await this.#send("Page.captureScreenshot", {
      format: "png",
    });
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, data, "base64");
  }
}

/** Runs a body with a new page of a browser of its own. */
export async function withBrowserPage(
  body: (page: BrowserPage) => Promise<void>,
): Promise<void> {
  const path = chromiumPath();
  if (path === undefined) {
    throw new Error("Cannot start Chromium: it is not in the path");
  }
  const folder = await mkdtemp(join(tmpdir(), "coracle-chromium-"));
  const child = spawn(path, [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--hide-scrollbars",
    "--remote-debugging-port=0",
    `--user-data-dir=${folder}`,
    "about:blank",
  ], { stdio: ["ignore", "ignore", "pipe"] });
  const closed = new Promise((resolve) => child.once("close", resolve));
  try {
    const socket = new WebSocket(await devToolsUrl(child));
    await new Promise((resolve, reject) => {
      socket.onopen = resolve;
      socket.onerror = reject;
    });
    await body(await openPage(socket));
  } finally {
    child.kill("SIGKILL");
    await closed;
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

async function devToolsUrl(child: ChildProcess): Promise<string> {
  let output = "";
  return await new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => reject(new Error(`Cannot start Chromium: ${output}`)),
      LIMIT_MS,
    );
    child.once("error", reject);
    child.stderr?.setEncoding("utf8").on("data", (text) => {
      output += text;
      const url = /DevTools listening on (\S+)/.exec(output)?.[1];
      if (url === undefined) return;
      clearTimeout(timer);
      resolve(url);
    });
  });
}

async function openPage(socket: WebSocket): Promise<BrowserPage> {
  let last = 0;
  const session: { id?: string } = {};
  const waiting = new Map<number, PromiseWithResolvers<Json>>();
  const send = (method: string, params: Json = {}): Promise<Json> => {
    const id = ++last;
    const call = Promise.withResolvers<Json>();
    waiting.set(id, call);
    socket.send(JSON.stringify({ id, method, params, sessionId: session.id }));
    return call.promise;
  };
  const page = new BrowserPage(send);
  socket.onmessage = ({ data }) => {
    const { id, result, error, method, params } = JSON.parse(data);
    if (id === undefined) return page.record(method, params);
    const call = waiting.get(id);
    waiting.delete(id);
    if (error === undefined) call?.resolve(result);
    else call?.reject(new Error(error.message));
  };
  socket.onclose = () => {
    for (const call of waiting.values()) {
      call.reject(new Error("Chromium has ended"));
    }
  };
  const { targetId } = await send("Target.createTarget", {
    url: "about:blank",
  });
  const { sessionId } = await send("Target.attachToTarget", {
    targetId,
    flatten: true,
  });
  session.id = sessionId;
  for (const domain of ["Page", "Network", "Runtime", "Log"]) {
    await send(`${domain}.enable`);
  }
  return page;
}
