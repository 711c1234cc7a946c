/** Pattern of valid bearer tokens. */
const HEADER_TEXT = /^[\x21-\x7e]+$/;

/**
 * Checks that a bearer token can be sent in a header.
 *
 * @param field Location of the token, for errors, which never quote it.
 * @throws {TypeError} If it has other characters.
 */
export function checkToken(token: string, field: string): void {
  if (HEADER_TEXT.test(token)) return;
  throw new TypeError(
    `Cannot use ${field}: it must consist of printable ASCII characters: received a text of ${token.length} characters`,
  );
}
