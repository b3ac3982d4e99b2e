import { expect, test } from 'vitest';
import { parseHistory } from './history.ts';

// The header and the first two rows are those of PayFast's documentation ("Transaction history").
const HEADER =
  '"Date","Type","Sign","Party","Name","Description","Currency","Funding Type","Gross","Fee","Net","Balance",' +
  '"M Payment ID","PF Payment ID","custom str1","custom int1","custom str2","custom int2","custom str3","custom str4",' +
  '"custom str5","custom int3","custom int4","custom int5"';
const ROWS = [
  '"2020-02-27 13:29:55",FUNDS_RECEIVED,CREDIT,"Test User 01",test,,ZAR,CC,500.00,-24.73,475.27,"22,574.02",,994209,,,,,,,,,, ',
  '"2020-03-02 14:31:30",FUNDS_RECEIVED,CREDIT,"Test User 01","item name",,ZAR,CC,121.00,-7.73,113.27,"22,780.50",pay_now_11611660,995893,,,,,,,,,,',
  '"2020-03-03 00:10:00","Funds Received (Refund)",DEBIT,"A, ""B""",x,,ZAR,CC,"-1,121.00",0.00,"-1,121.00",1.00,p-2,995894,,,,,,,,,,',
  '"2020-03-03 01:00:00",PAYOUT,DEBIT,,,,ZAR,,-100.00,,-100.00,1.00,,,,,,,,,,,,',
];

test('rows have amounts in cents, signs as they came, and times of South Africa', () => {
  expect(parseHistory([HEADER, ...ROWS].join('\n'))).toEqual([
    {
      kind: 'payment',
      at: new Date('2020-02-27T11:29:55Z'),
      currency: 'ZAR',
      gross: 50_000n,
      fee: -2473n,
      net: 47_527n,
      chargeRef: '994209',
    },
    expect.objectContaining({ kind: 'payment', paymentId: 'pay_now_11611660', chargeRef: '995893' }),
    expect.objectContaining({ kind: 'refund', gross: -112_100n, at: new Date('2020-03-02T22:10:00Z') }),
    expect.objectContaining({ kind: 'other', gross: -10_000n, fee: 0n }),
  ]);
});

test('a list without rows is empty', () => {
  expect(parseHistory(`${HEADER}\n`)).toEqual([]);
});

test.each([
  ['nothing', ''],
  ['a line', '{}'],
  ['a page of HTML', '<html><body>Application error</body></html>\n<p>x</p>'],
  ['a cut row', `${HEADER}\n"2020-02-27 13:29`],
  ['an amount that is none', [HEADER, ROWS[0]?.replace('500.00', '5e2')].join('\n')],
  ['a currency that is none', [HEADER, ROWS[0]?.replace('ZAR', 'ZZZ')].join('\n')],
  ['another list', 'Date,Amount\n2020-02-27 13:29:55,10'],
])('%s is no list', (_what, csv) => {
  expect(parseHistory(csv)).toBeUndefined();
});
