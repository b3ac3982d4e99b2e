/** How long an answer may be kept that is made of several. */
export interface CacheControl {
  /** Of one of the answers. Undefined: it does not say. */
  add(value: string | undefined, age: string | readonly string[] | undefined): void;
  /** The value of the header field. @param isWhole whether there was no error. */
  merged(isWhole: boolean): string;
}

/** Such an answer may never be kept. */
const NO_STORE = 'no-store';
const SECONDS = /^\d{1,9}$/;

/**
 * The most restrictive of what all answers say (RFC 9111, section 5.2.2). Never for others than the
 * caller: who may see what is decided for each.
 */
export function createCacheControl(): CacheControl {
  let seconds: number | undefined;
  let mayBeStored = true;
  let isChecked = false;

  return {
    add(value = NO_STORE, age) {
      const directives = directivesOf(value);
      if (directives.has(NO_STORE)) mayBeStored = false;
      if (directives.has('no-cache') || directives.has('must-revalidate')) isChecked = true;
      const left = directives.has('no-cache') ? 0 : secondsOf(directives.get('max-age')) - secondsOf(age);
      seconds = Math.min(seconds ?? left, Math.max(0, left));
    },
    merged(isWhole) {
      if (!isWhole || !mayBeStored || seconds === undefined) return NO_STORE;
      return `private, max-age=${seconds}${isChecked ? ', must-revalidate' : ''}`;
    },
  };
}

/** Of what is said twice the shorter counts. */
function directivesOf(value: string): ReadonlyMap<string, string> {
  const directives = new Map<string, string>();
  for (const part of value.split(',')) {
    const [name = '', argument = ''] = part.split('=').map((text) => text.trim().toLowerCase());
    const before = directives.get(name);
    const isShorter = before !== undefined && secondsOf(argument) < secondsOf(before);
    if (before === undefined || isShorter) directives.set(name, argument);
  }
  return directives;
}

function secondsOf(text: string | readonly string[] | undefined): number {
  const unquoted = typeof text === 'string' ? text.replaceAll('"', '') : '';
  return SECONDS.test(unquoted) ? Number(unquoted) : 0;
}
