import { Buffer } from "node:buffer";
import { type ByteRange, wholeRange } from "../../json/byte_range.ts";

/** Two bytes name a namespace; 0 is that of cluster-scoped objects. */
const MAX_NAMESPACES = 0xffff;

const NO_BYTES = wholeRange(Buffer.alloc(0));

/** Numbers for namespaces, so that an object needs two bytes for its own. */
export class NamespaceTable {
  readonly #numbers: Map<string, number> = new Map([["", 0]]);
  readonly #names: string[] = [""];
  /** The same, encoded. */
  readonly #bytes: ByteRange[] = [NO_BYTES];
  /** How many objects each has. */
  readonly #counts: number[] = [0];
  readonly #free: number[] = [];

  /** Whether the namespace of a number is this one. */
  equals(number: number, { bytes, start, end }: ByteRange): boolean {
    const own = this.bytes(number);
    if (own.end !== end - start) return false;
    for (let i = 0; i < own.end; i++) {
      if (own.bytes[i] !== bytes[start + i]) return false;
    }
    return true;
  }

  /** The namespace of a number. */
  name(number: number): string {
    return this.#names[number] ?? "";
  }

  /** The namespace of a number, encoded. */
  bytes(number: number): ByteRange {
    return this.#bytes[number] ?? NO_BYTES;
  }

  /**
   * Counts one more object in a namespace.
   *
   * @throws {RangeError} If there are more than 65,535 namespaces.
   */
  enter(namespace: string): number {
    let number = this.#numbers.get(namespace);
    if (number === undefined) {
      number = this.#free.pop() ?? this.#names.length;
      if (number > MAX_NAMESPACES) {
        throw new RangeError(
          `Cannot keep objects of more than ${MAX_NAMESPACES} namespaces in one store: received one of "${namespace}"`,
        );
      }
      this.#numbers.set(namespace, number);
      this.#names[number] = namespace;
      this.#bytes[number] = wholeRange(Buffer.from(namespace));
      this.#counts[number] = 0;
    }
    this.#counts[number] = (this.#counts[number] ?? 0) + 1;
    return number;
  }

  /** Counts one object less; a namespace without objects is forgotten. */
  leave(number: number): void {
    const count = (this.#counts[number] ?? 0) - 1;
    this.#counts[number] = count;
    if (count > 0 || number === 0) return;
    this.#numbers.delete(this.name(number));
    this.#free.push(number);
  }
}
