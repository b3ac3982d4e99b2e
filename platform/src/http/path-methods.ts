/**
 * Which methods each path can be called with, for callers who used another (RFC 9110, sections
 * 9.3.7 and 15.5.6).
 */
export interface PathMethods {
  /** Whether a path is that of a route, without asking for its methods. */
  has(path: string): boolean;
  /**
   * @param pattern as Fastify has it: `:name` stands for one segment, `*` at the end for any rest.
   */
  add(pattern: string, methods: string | readonly string[]): void;
  /** In alphabetical order; empty where no route has this path. */
  at(path: string): string[];
}

export function createPathMethods(): PathMethods {
  // Split once: the gateway asks at each request.
  const byPattern = new Map<string, { readonly segments: readonly string[]; readonly methods: Set<string> }>();
  return {
    add(pattern, methods) {
      const known = byPattern.get(pattern) ?? { segments: pattern.split('/'), methods: new Set() };
      byPattern.set(pattern, known);
      for (const method of [methods].flat()) known.methods.add(method);
    },
    has(path) {
      const segments = path.split('/');
      return byPattern.values().some((known) => matches(known.segments, segments));
    },
    at(path) {
      const segments = path.split('/');
      const matching = [...byPattern.values()].filter((known) => matches(known.segments, segments));
      return [...new Set(matching.flatMap(({ methods }) => [...methods]))].sort();
    },
  };
}

/** Whether the segments of a path fit those of a pattern. */
export function matches(pattern: readonly string[], segments: readonly string[]): boolean {
  const open = pattern.at(-1) === '*';
  const fixed = open ? pattern.slice(0, -1) : pattern;
  if (open ? segments.length < pattern.length : segments.length !== pattern.length) return false;
  return fixed.every((part, index) => part.startsWith(':') || part === segments[index]);
}
