import { type Static, Type } from 'typebox';
import { Value } from 'typebox/value';

const REQUEST_FAULTS = ['accept-and-hang', 'status', 'garbage', 'broken-ids', 'half-body', 'reset', 'slow'] as const;
const NOTIFICATION_FAULTS = [
  'twice',
  'out-of-order',
  'bad-signature',
  'wrong-amount',
  'wrong-merchant',
  'delayed',
  'never',
  'before-the-answer',
] as const;

type RequestFault = (typeof REQUEST_FAULTS)[number];
type NotificationFault = (typeof NOTIFICATION_FAULTS)[number];

/** One way to misbehave, as `POST /_control/faults` takes it. */
export const FaultRule = Type.Object(
  {
    kind: Type.Enum([...REQUEST_FAULTS, ...NOTIFICATION_FAULTS]),
    /**
     * Only what has this text in its method and target (`POST /v1/…`) or its decoded body; for
     * notifications in any of a sequence.
     */
    match: Type.Optional(Type.String({ minLength: 1, maxLength: 1000 })),
    /** For how many requests, or sequences of notifications; for all when absent. */
    times: Type.Optional(Type.Integer({ minimum: 1 })),
    /** Of `status`; 503 when absent. */
    status: Type.Optional(Type.Integer({ minimum: 400, maximum: 599 })),
    /** Of `status`: seconds, or an HTTP date as it stands in the header. */
    retryAfter: Type.Optional(Type.Union([Type.Integer({ minimum: 0 }), Type.String({ maxLength: 100 })])),
    /** Of `slow` and `delayed`; 1000 when absent. */
    delayMs: Type.Optional(Type.Integer({ minimum: 0, maximum: 600_000 })),
    /**
     * Whether the request takes effect before it is answered so. When absent: not for `status`, and
     * for every other kind.
     */
    isTaken: Type.Optional(Type.Boolean()),
  },
  { additionalProperties: false },
);
export type FaultRule = Readonly<Static<typeof FaultRule>>;

export interface RequestFaultRule extends FaultRule {
  readonly kind: RequestFault;
}

interface NotificationFaultRule extends FaultRule {
  readonly kind: NotificationFault;
}

/** The rules that hold, the oldest first. */
export interface Faults {
  add(rules: readonly FaultRule[]): void;
  /** The oldest rule that matches the text, used once more. */
  takeForRequest(text: string): RequestFaultRule | undefined;
  takeForNotification(text: string): NotificationFaultRule | undefined;
  clear(): void;
}

export function createFaults(): Faults {
  let waiting: { readonly rule: FaultRule; left: number }[] = [];

  function take<Rule extends FaultRule>(text: string, isOfKind: (rule: FaultRule) => rule is Rule): Rule | undefined {
    for (const entry of waiting) {
      const { rule } = entry;
      if (!isOfKind(rule) || !(rule.match === undefined || text.includes(rule.match))) continue;
      entry.left -= 1;
      waiting = waiting.filter(({ left }) => left > 0);
      return rule;
    }
    return undefined;
  }

  return {
    add(rules) {
      for (const rule of rules) waiting.push({ rule, left: rule.times ?? Number.POSITIVE_INFINITY });
    },
    takeForRequest: (text) => take(text, isRequestFault),
    takeForNotification: (text) => take(text, isNotificationFault),
    clear() {
      waiting = [];
    },
  };
}

/** Whether the request that meets the fault takes effect. */
export function isTaken({ kind, isTaken: given }: RequestFaultRule): boolean {
  return given ?? kind !== 'status';
}

/**
 * One rule or a list of them, from JSON.
 *
 * @throws Error for people where one is none.
 */
export function parseFaultRules(value: unknown): readonly FaultRule[] {
  const rules: readonly unknown[] = Array.isArray(value) ? value : [value];
  return rules.map((rule) => {
    if (Value.Check(FaultRule, rule)) return rule;
    const [fault] = Value.Errors(FaultRule, rule);
    throw new Error(`no fault: ${fault?.instancePath ?? ''} ${fault?.message ?? ''}`);
  });
}

function isRequestFault(rule: FaultRule): rule is RequestFaultRule {
  return REQUEST_FAULTS.some((kind) => kind === rule.kind);
}

function isNotificationFault(rule: FaultRule): rule is NotificationFaultRule {
  return NOTIFICATION_FAULTS.some((kind) => kind === rule.kind);
}
