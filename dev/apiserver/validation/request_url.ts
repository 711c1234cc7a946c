import { isIPv6 } from "node:net";
import { goQuote } from "./go_value.ts";

/** Parts of a URL, as Go's `net/url` splits it. */
export interface RequestUrl {
  /** Scheme in lower case; empty for a path. */
  readonly scheme: string;
  /** Host with its port. */
  readonly host: string;
  /** Path, with characters escaped that need it. */
  readonly path: string;
  /** Query without the question mark. */
  readonly query: string;
  /** The whole, from its parts. */
  readonly text: string;
}

/** What a rule about the URL of a webhook reads. */
export interface WebhookUrl {
  /** Reason why the text is no URL; empty for a URL. */
  readonly problem: string;
  readonly scheme: string;
  readonly host: string;
  readonly user: string;
  readonly query: string;
  readonly fragment: string;
}

/** Parts of the URL of a webhook. */
export function webhookUrl(text: string): WebhookUrl {
  const empty = { scheme: "", host: "", user: "", query: "", fragment: "" };
  const [whole = "", fragment = ""] = text.split(/#(.*)/s);
  try {
    const { scheme, host, query } = parse(whole, false);
    const user = /^[^/?]*\/\/([^/?]*)@/.exec(whole)?.[1] ?? "";
    return { problem: "", scheme, host, user, query, fragment };
  } catch (error) {
    if (!(error instanceof UrlError)) throw error;
    return { ...empty, problem: `parse ${goQuote(text)}: ${error.message}` };
  }
}

/** Error of a part of a URL. */
class UrlError extends Error {
  override readonly name = "UrlError";
}

function fail(message: string): never {
  throw new UrlError(message);
}

/** Reason why a text is no URL of a request, as Go says it; undefined for a URL. */
export function requestUrlProblem(text: string): string | undefined {
  const parsed = parseRequestUrl(text);
  return typeof parsed === "string" ? parsed : undefined;
}

/**
 * Parses an absolute URL or path.
 *
 * @returns Parts; the reason if the text is neither.
 */
export function parseRequestUrl(text: string): RequestUrl | string {
  try {
    // A request has no fragment: what looks like one is a part of the rest.
    parse(text, true);
    const hash = text.indexOf("#");
    if (hash < 0) return parse(text, false);
    const url = parse(text.slice(0, hash), false);
    return { ...url, text: `${url.text}${text.slice(hash)}` };
  } catch (error) {
    if (!(error instanceof UrlError)) throw error;
    return `parse ${goQuote(text)}: ${error.message}`;
  }
}

function parse(raw: string, request: boolean): RequestUrl {
  // deno-lint-ignore no-control-regex -- control characters are refused
  if (/[\x00-\x1f\x7f]/.test(raw)) {
    fail("net/url: invalid control character in URL");
  }
  if (raw === "" && request) fail("empty url");
  if (raw === "*") {
    return { scheme: "", host: "", path: "*", query: "", text: "*" };
  }
  if (raw.startsWith(":")) fail("missing protocol scheme");
  const named = /^([a-zA-Z][a-zA-Z0-9+.-]*):/.exec(raw)?.[1];
  const scheme = (named ?? "").toLowerCase();
  const after = named === undefined ? raw : raw.slice(named.length + 1);
  const mark = after.indexOf("?");
  const query = mark < 0 ? "" : after.slice(mark + 1);
  const rest = mark < 0 ? after : after.slice(0, mark);
  const prefix = scheme === "" ? "" : `${scheme}:`;
  const suffix = mark < 0 ? "" : `?${query}`;
  if (!rest.startsWith("/")) {
    if (scheme !== "") {
      // What follows the scheme is opaque.
      const text = `${prefix}${rest}${suffix}`;
      return { scheme, host: "", path: "", query, text };
    }
    if (request) fail("invalid URI for request");
    if (rest.split("/")[0]?.includes(":")) {
      fail("first path segment in URL cannot contain colon");
    }
  }
  const hasHost = rest.startsWith("//") &&
    (scheme !== "" || (!request && !rest.startsWith("///")));
  if (!hasHost) {
    const path = escapedPath(rest);
    return {
      scheme,
      host: "",
      path,
      query,
      text: `${prefix}${path}${suffix}`,
    };
  }
  const slash = rest.indexOf("/", 2);
  const authority = rest.slice(2, slash < 0 ? undefined : slash);
  const path = escapedPath(slash < 0 ? "" : rest.slice(slash));
  const { user, host } = parseAuthority(scheme, authority);
  return {
    scheme,
    host,
    path,
    query,
    text: `${prefix}//${user}${host}${path}${suffix}`,
  };
}

function parseAuthority(
  scheme: string,
  authority: string,
): { readonly user: string; readonly host: string } {
  const at = authority.lastIndexOf("@");
  const host = parseHost(scheme, authority.slice(at + 1));
  if (at < 0) return { user: "", host };
  const user = authority.slice(0, at);
  if (!/^[A-Za-z0-9\-._:~!$&'()*+,;=%@]*$/.test(user)) {
    fail("net/url: invalid userinfo");
  }
  unescaped(user);
  return { user: `${user}@`, host };
}

function parseHost(scheme: string, host: string): string {
  const bracket = host.lastIndexOf("[");
  if (bracket >= 0) return bracketed(host, bracket);
  // Only the schemes of HTTP allow no list of hosts with ports.
  const colon = /^https?$/.test(scheme)
    ? host.indexOf(":")
    : host.lastIndexOf(":");
  if (colon >= 0) checkPort(host.slice(colon));
  return unescapedHost(host);
}

function bracketed(host: string, open: number): string {
  if (open > 0) fail("invalid IP-literal");
  const close = host.lastIndexOf("]");
  if (close < 0) fail("missing ']' in host");
  checkPort(host.slice(close + 1));
  const zone = host.slice(0, close).indexOf("%25");
  const address = host.slice(1, zone < 0 ? close : zone);
  if (!isIPv6(address)) {
    fail(`invalid host: ParseAddr(${goQuote(address)}): unable to parse IP`);
  }
  return zone < 0
    ? unescapedHost(host)
    : unescapedHost(host.slice(0, zone)) + unescaped(host.slice(zone));
}

function checkPort(text: string): void {
  if (!/^(?::\d*)?$/.test(text)) {
    fail(`invalid port ${goQuote(text)} after host`);
  }
}

function unescapedHost(host: string): string {
  for (const { 0: escape, index } of host.matchAll(/%[^]{0,2}/g)) {
    const hex = /^%[\da-fA-F]{2}$/.test(escape);
    if (!hex || (escape !== "%25" && /^%[0-7]/.test(escape))) {
      fail(`invalid URL escape ${goQuote(host.slice(index, index + 3))}`);
    }
  }
  // deno-lint-ignore no-control-regex -- ASCII characters only
  const wrong = /[\x00-\x7f]/g;
  for (const [character] of host.matchAll(wrong)) {
    if (!/[A-Za-z0-9\-_.~!$&'()*+,;=:[\]<>"%]/.test(character)) {
      fail(`invalid character ${goQuote(character)} in host name`);
    }
  }
  return unescaped(host);
}

/** Text with its escapes replaced; bytes that are no UTF-8 are replaced. */
function unescaped(text: string): string {
  for (const { index } of text.matchAll(/%(?![\da-fA-F]{2})/g)) {
    fail(`invalid URL escape ${goQuote(text.slice(index, index + 3))}`);
  }
  return text.replaceAll(/(?:%[\da-fA-F]{2})+/g, (escapes) => {
    const bytes = escapes.slice(1).split("%")
      .map((byte) => Number.parseInt(byte, 16));
    return new TextDecoder().decode(Uint8Array.from(bytes));
  });
}

function escapedPath(path: string): string {
  unescaped(path);
  return path.replaceAll(
    /[^A-Za-z0-9\-_.~!$&'()*+,;=:@[\]/%]+/g,
    (part) => encodeURIComponent(part),
  );
}

/** Values of a query by their names; what cannot be decoded is left out. */
export function queryValues(query: string): Map<string, string[]> {
  const values = new Map<string, string[]>();
  for (const part of query.split("&")) {
    if (part === "" || part.includes(";")) continue;
    const [name = "", ...rest] = part.split("=");
    try {
      const key = decoded(name);
      values.set(key, [...values.get(key) ?? [], decoded(rest.join("="))]);
    } catch (error) {
      if (!(error instanceof UrlError)) throw error;
    }
  }
  return values;
}

function decoded(text: string): string {
  return unescaped(text.replaceAll("+", " "));
}
