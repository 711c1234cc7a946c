import {
  label1035Problems,
  labelProblems,
  labelValueProblems,
  qualifiedNameProblems,
  subdomainProblems,
} from "../validation/names.ts";
import { matchesFormat } from "../crd/schema/formats.ts";
import { type CelType, struct } from "./cel_type.ts";
import type { FunctionDefinitions } from "./function_declaration.ts";
import { requestUrlProblem } from "../validation/request_url.ts";
import { Optional, registerClass } from "./values.ts";

/** Function that returns the violations of a text. */
type Problems = (text: string) => readonly string[];

/** Named format. */
class NamedFormat {
  /** Length of its pattern, for costs. */
  readonly patternSize: number;
  readonly problems: Problems;

  constructor(patternSize: number, problems: Problems) {
    this.patternSize = patternSize;
    this.problems = problems;
  }
}

/** Type of named formats. */
export const FORMAT_TYPE: CelType = struct("kubernetes.NamedFormat");

registerClass(NamedFormat, {
  type: FORMAT_TYPE,
  equals: (a: NamedFormat, b: NamedFormat) => a === b,
});

/** Check of a name prefix, which may end with a dash; as upstream, the character before it does not count. */
function prefix(problems: Problems): Problems {
  return (text) => problems(text.replace(/[^]-$/, "a"));
}

function known(format: string, problem: string): Problems {
  return (text) => matchesFormat(format, text) ? [] : [problem];
}

/** Formats by name, with the lengths of their patterns upstream. */
const FORMATS: Readonly<
  Record<string, readonly [patternSize: number, problems: Problems]>
> = {
  dns1123Label: [30, labelProblems],
  dns1123Subdomain: [60, subdomainProblems],
  dns1035Label: [30, label1035Problems],
  qualifiedName: [60, qualifiedNameProblems],
  dns1123LabelPrefix: [30, prefix(labelProblems)],
  dns1123SubdomainPrefix: [60, prefix(subdomainProblems)],
  dns1035LabelPrefix: [30, prefix(label1035Problems)],
  labelValue: [40, labelValueProblems],
  uri: [1103, (text) => {
    const problem = requestUrlProblem(text);
    return problem === undefined ? [] : [problem];
  }],
  uuid: [70, known("uuid", "does not match the UUID format")],
  byte: [84, known("byte", "invalid base64")],
  date: [71, known("date", "invalid date")],
  datetime: [71, known("datetime", "invalid datetime")],
};

const KNOWN: ReadonlyMap<string, NamedFormat> = new Map(
  Object.entries(FORMATS).map(([name, [patternSize, problems]]) =>
    [name, new NamedFormat(patternSize, problems)] as const
  ),
);

/** CEL function `format.named()`, the formats and their method `validate()`. */
export const NAMED_FORMATS: FunctionDefinitions = {
  "format.named(string): optional<NamedFormat>": (name: string) => {
    const format = KNOWN.get(name);
    return format === undefined ? Optional.NONE : Optional.of(format);
  },
  "validate(this NamedFormat, string): optional<list<string>>": (
    { problems }: NamedFormat,
    text: string,
  ) => {
    const found = problems(text);
    return found.length === 0 ? Optional.NONE : Optional.of([...found]);
  },
  ...Object.fromEntries([...KNOWN].map(([name, format]) => [
    `format.${name}(): NamedFormat`,
    () => format,
  ])),
};
