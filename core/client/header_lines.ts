import type { HttpRequest } from "./transport.ts";

/** What may be the name of a header, and what its value (RFC 9110). */
const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

/**
 * The headers of a request, a line each.
 *
 * @throws {TypeError} If one cannot be sent. It may be secret, so that the
 * message, other than those of some runtimes, has its name only.
 */
export function headerLines(
  request: Pick<HttpRequest, "headers" | "repeatedHeaders">,
): [string, string][] {
  const { headers, repeatedHeaders = {} } = request;
  const lines = [
    ...Object.entries(headers),
    ...Object.entries(repeatedHeaders).flatMap(([name, values]) =>
      values.map((value): [string, string] => [name, value])
    ),
  ];
  for (const [name, value] of lines) {
    if (NAME.test(name) && VALUE.test(value)) continue;
    throw new TypeError(
      `Cannot send a request: a header must be a token with a value of one line: received ${
        JSON.stringify(name)
      } with something else`,
    );
  }
  return lines;
}
