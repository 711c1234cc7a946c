/** The operators that may follow a label name, longest first. */
const OPERATORS = ["==", "!=", "=", ">", "<"];
const SPECIAL = "=!(),<>";
const WHITE_SPACE = " \t\r\n";

/**
 * Reads the words and symbols of a label selector from left to right. `in` and
 * `notin` are operators only where one is expected, so that they can be label
 * names and values too.
 */
export class LabelTokens {
  readonly #text: string;
  #position = 0;

  constructor(text: string) {
    this.#text = text;
    this.#skipSpace();
  }

  /** Whether everything was read. */
  get atEnd(): boolean {
    return this.#position >= this.#text.length;
  }

  /** Whether the next symbol is this one. */
  sees(symbol: string): boolean {
    return this.#text.startsWith(symbol, this.#position);
  }

  /** Reads the symbol if it is next. */
  take(symbol: string): boolean {
    if (!this.sees(symbol)) return false;
    this.#advance(symbol.length);
    return true;
  }

  /** Reads the symbol, which must be next. */
  expect(symbol: string, expected: string): void {
    if (!this.take(symbol)) this.fail(expected);
  }

  /** Reads a label name or value. */
  word(expected: string): string {
    const word = this.#peekWord();
    if (word === "") this.fail(expected);
    this.#advance(word.length);
    return word;
  }

  /** Reads the operator after a label name. */
  operator(): string {
    const word = this.#peekWord();
    const found = word === ""
      ? OPERATORS.find((symbol) => this.sees(symbol))
      : word;
    if (found === undefined || (word !== "" && !/^(not)?in$/.test(word))) {
      return this.fail('one of "=", "==", "!=", "in", "notin", ">", "<"');
    }
    this.#advance(found.length);
    return found;
  }

  /** Says what was expected here. */
  fail(expected: string): never {
    const rest = this.atEnd
      ? "the end"
      : `"${this.#text.slice(this.#position)}"`;
    throw new SyntaxError(
      `Cannot read label selector "${this.#text}": expected ${expected} at ${
        this.#position + 1
      }: received ${rest}`,
    );
  }

  /** Tells an invalid condition as an error of the whole selector. */
  checked<T>(make: () => T): T {
    try {
      return make();
    } catch (error) {
      throw new SyntaxError(
        `Cannot read label selector "${this.#text}": ${
          error instanceof Error ? error.message : error
        }`,
      );
    }
  }

  #peekWord(): string {
    let end = this.#position;
    while (end < this.#text.length) {
      const character = this.#text.charAt(end);
      if (SPECIAL.includes(character) || WHITE_SPACE.includes(character)) break;
      end++;
    }
    return this.#text.slice(this.#position, end);
  }

  #advance(length: number): void {
    this.#position += length;
    this.#skipSpace();
  }

  #skipSpace(): void {
    while (
      !this.atEnd && WHITE_SPACE.includes(this.#text.charAt(this.#position))
    ) this.#position++;
  }
}
