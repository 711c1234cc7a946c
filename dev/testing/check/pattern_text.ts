/** Maximum number of repetitions of one part of an expression. */
const MAX_REPEATS = 3;
/** Characters of generated texts, the usual ones first. */
const CHARACTERS = [
  ..."abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._/:@ %+*",
];

/**
 * Generates a text that matches a regular expression of a schema. Characters,
 * classes, groups, alternatives and repetitions are supported.
 *
 * @param pattern The expression.
 * @param variant Number of the text: different numbers give different texts
 * where the expression allows it.
 * @returns The text; undefined if the expression has unsupported parts.
 */
export function textMatching(
  pattern: string,
  variant: number,
): string | undefined {
  const reader = new PatternReader(pattern, variant);
  const text = reader.alternatives();
  if (!reader.isDone) return undefined;
  try {
    return new RegExp(pattern, "u").test(text) ? text : undefined;
  } catch {
    return undefined;
  }
}

/** Parser of a regular expression that generates a matching text. */
class PatternReader {
  readonly #pattern: string;
  readonly #variant: number;
  #at = 0;

  constructor(pattern: string, variant: number) {
    this.#pattern = pattern;
    this.#variant = variant;
  }

  get isDone(): boolean {
    return this.#at >= this.#pattern.length;
  }

  /** Parses alternatives up to the end of their group. */
  alternatives(): string {
    const texts = [this.#sequence()];
    while (this.#takes("|")) texts.push(this.#sequence());
    return texts[this.#variant % texts.length] ?? "";
  }

  #sequence(): string {
    let text = "";
    while (!this.isDone && !"|)".includes(this.#peek)) {
      const start = this.#at;
      let part = this.#part();
      const [least, most] = this.#repeats();
      const times = Math.min(Math.max(least, most === 0 ? 0 : 1), most);
      if (least === 0 && this.#variant % 2 === 1 && part.length > 1) part = "";
      else {part = part.repeat(
          Math.max(times, Math.min(least, MAX_REPEATS * 32)),
        );}
      text += part;
      if (this.#at === start) break;
    }
    return text;
  }

  #part(): string {
    const found = this.#next();
    switch (found) {
      case "^":
      case "$":
        return "";
      case ".":
        return this.#choose(() => true);
      case "(": {
        if (this.#takes("?")) {
          if (!this.#takes(":")) this.#at = this.#pattern.length + 1;
        }
        const text = this.alternatives();
        this.#takes(")");
        return text;
      }
      case "[":
        return this.#class();
      case "\\":
        return this.#escaped();
      default:
        return found;
    }
  }

  #escaped(): string {
    const escape = this.#next();
    return /[dDwWsS]/.test(escape)
      ? this.#choose((text) => new RegExp(`\\${escape}`, "u").test(text))
      : /[bBAz]/.test(escape)
      ? ""
      : escape;
  }

  #class(): string {
    const start = this.#at - 1;
    this.#takes("^");
    this.#takes("]");
    while (!this.isDone && this.#peek !== "]") {
      if (this.#next() === "\\") this.#at++;
    }
    this.#takes("]");
    const source = this.#pattern.slice(start, this.#at);
    let test: RegExp;
    try {
      test = new RegExp(`^${source}$`, "u");
    } catch {
      return "";
    }
    return this.#choose((text) => test.test(text));
  }

  #repeats(): readonly [least: number, most: number] {
    let found: readonly [number, number] = [1, 1];
    if (this.#takes("*")) found = [0, MAX_REPEATS];
    else if (this.#takes("+")) found = [1, MAX_REPEATS];
    else if (this.#takes("?")) found = [0, 1];
    else {
      const bounds = /^\{(\d+)(,(\d*))?\}/.exec(this.#pattern.slice(this.#at));
      if (bounds === null) return found;
      this.#at += bounds[0].length;
      const least = Number(bounds[1]);
      const most = bounds[2] === undefined
        ? least
        : Number(bounds[3] || least + 1);
      found = [least, most];
    }
    this.#takes("?");
    return found;
  }

  #choose(matches: (text: string) => boolean): string {
    const fitting = CHARACTERS.filter(matches);
    return fitting[this.#variant % Math.max(fitting.length, 1)] ?? "";
  }

  get #peek(): string {
    return this.#pattern[this.#at] ?? "";
  }

  #next(): string {
    return this.#pattern[this.#at++] ?? "";
  }

  #takes(text: string): boolean {
    if (this.#peek !== text) return false;
    this.#at++;
    return true;
  }
}
