import { compareResourceVersions } from "../../api/resource_version.ts";
import type { ObjectHeader } from "../../json/object_header.ts";

/**
 * How far a stream has come. It moves with each event and is hardly ever asked
 * for, so the version is kept as a number where that is exact, and its text is
 * made when somebody wants it.
 */
export class VersionMark {
  /** NaN where only the text tells the version. */
  #number = NaN;
  #text = "";

  /** The version; empty before the first one. */
  get text(): string {
    return Number.isNaN(this.#number) ? this.#text : String(this.#number);
  }

  set text(version: string) {
    this.#number = NaN;
    this.#text = version;
  }

  /** Moves to the version of a header. */
  moveTo(header: ObjectHeader): void {
    this.#number = header.versionNumber;
    if (Number.isNaN(this.#number)) this.#text = header.resourceVersion;
  }

  /** Whether it is ahead of the version of a header. */
  isAheadOf(header: ObjectHeader): boolean {
    const difference = this.#number - header.versionNumber;
    return Number.isNaN(difference)
      ? compareResourceVersions(this.text, header.resourceVersion) > 0
      : difference > 0;
  }
}
