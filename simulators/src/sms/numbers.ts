import { parsePhoneNumberFromString } from 'libphonenumber-js/max';

/** What providers find out of a number: no number at all, one without SMS, or a good one. */
export type NumberClass = 'invalid' | 'not-mobile' | 'mobile';

/** Of a number in E.164 with its plus sign. */
export function classOf(number: string): NumberClass {
  const parsed = /^\+[1-9]\d{6,14}$/.test(number) ? parsePhoneNumberFromString(number) : undefined;
  if (parsed?.isValid() !== true) return 'invalid';
  return parsed.getType() === 'FIXED_LINE' ? 'not-mobile' : 'mobile';
}
