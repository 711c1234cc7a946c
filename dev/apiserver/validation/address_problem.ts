import { goQuote } from "./go_value.ts";

/** Problem of an address, and the rest of the text where it is. */
interface AddressProblem {
  readonly what: string;
  readonly at: string;
}

/**
 * Error of Go's `netip.ParseAddr` for a text.
 *
 * @returns Undefined for an address, which may have a zone or be IPv4-mapped.
 */
export function addressProblem(text: string): string | undefined {
  const problem = problemOf(text);
  if (problem === undefined) return undefined;
  const at = problem.at === "" ? "" : ` (at ${goQuote(problem.at)})`;
  return `ParseAddr(${goQuote(text)}): ${problem.what}${at}`;
}

/** Error of Go's `netip.ParsePrefix` for a text; undefined for a prefix. */
export function prefixProblem(text: string): string | undefined {
  const what = prefixProblemOf(text);
  return what && `netip.ParsePrefix(${goQuote(text)}): ${what}`;
}

function prefixProblemOf(text: string): string | undefined {
  const slash = text.lastIndexOf("/");
  if (slash < 0) return "no '/'";
  const address = text.slice(0, slash);
  const wrong = addressProblem(address);
  if (wrong !== undefined) return wrong;
  if (address.includes("%")) return "IPv6 zones cannot be present in a prefix";
  const bits = text.slice(slash + 1);
  if (!/^(?:\d|[1-9]\d*)$/.test(bits)) {
    return `bad bits after slash: ${goQuote(bits)}`;
  }
  const most = address.includes(":") ? 128 : 32;
  return Number(bits) > most ? "prefix length out of range" : undefined;
}

function problemOf(text: string): AddressProblem | undefined {
  switch (/[.:%]/.exec(text)?.[0]) {
    case ".":
      return problemOfFour(text);
    case ":":
      return problemOfSix(text);
    case "%":
      return { what: "missing IPv6 address", at: "" };
    default:
      return { what: "unable to parse IP", at: "" };
  }
}

function problemOfFour(text: string): AddressProblem | undefined {
  let fields = 1;
  let digits = "";
  for (const [index, character] of [...text].entries()) {
    const at = [...text].slice(index).join("");
    if (/\d/.test(character)) {
      if (digits === "0") {
        return { what: "IPv4 field has octet with leading zero", at: "" };
      }
      digits += character;
      if (Number(digits) > 255) {
        return { what: "IPv4 field has value >255", at: "" };
      }
    } else if (character !== ".") return { what: "unexpected character", at };
    else if (digits === "" || at === ".") {
      return { what: "IPv4 field must have at least one digit", at };
    } else if (fields === 4) return { what: "IPv4 address too long", at: "" };
    else {
      fields++;
      digits = "";
    }
  }
  return fields < 4 ? { what: "IPv4 address too short", at: "" } : undefined;
}

function problemOfSix(text: string): AddressProblem | undefined {
  const [before = "", ...zone] = text.split("%");
  if (zone.length > 0 && zone.join("%") === "") {
    return { what: "zone must be a non-empty string", at: "" };
  }
  let rest = before;
  let hasZeros = rest.startsWith("::");
  if (hasZeros) rest = rest.slice(2);
  if (hasZeros && rest === "") return undefined;
  let groups = 0;
  while (groups < 8) {
    const [group = ""] = /^[\da-fA-F]*/.exec(rest) ?? [];
    if (group.length > 4) {
      return { what: "each group must have 4 or less digits", at: rest };
    }
    if (group === "") {
      const what = "each colon-separated field must have at least one digit";
      return { what, at: rest };
    }
    if (rest[group.length] === ".") {
      if (!hasZeros && groups !== 6) {
        const what =
          "embedded IPv4 address must replace the final 2 fields of the address";
        return { what, at: rest };
      }
      if (groups > 6) {
        const what =
          "too many hex fields to fit an embedded IPv4 at the end of the address";
        return { what, at: rest };
      }
      const wrong = problemOfFour(rest);
      if (wrong !== undefined) return wrong;
      groups += 2;
      rest = "";
      break;
    }
    groups++;
    rest = rest.slice(group.length);
    if (rest === "") break;
    if (rest[0] !== ":") {
      return { what: "unexpected character, want colon", at: rest };
    }
    if (rest === ":") {
      return { what: "colon must be followed by more characters", at: rest };
    }
    rest = rest.slice(1);
    if (rest[0] === ":") {
      if (hasZeros) return { what: "multiple :: in address", at: rest };
      hasZeros = true;
      rest = rest.slice(1);
      if (rest === "") break;
    }
  }
  if (rest !== "") return { what: "trailing garbage after address", at: rest };
  if (groups < 8 && !hasZeros) {
    return { what: "address string too short", at: "" };
  }
  return groups === 8 && hasZeros
    ? { what: "the :: must expand to at least one field of zeros", at: "" }
    : undefined;
}
