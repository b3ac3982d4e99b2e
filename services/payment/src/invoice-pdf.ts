import { buffer } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import PdfDocument from 'pdfkit';
import { formatTaxRate, type InvoiceLine, type InvoiceTotals } from './domain/invoices.ts';
import { formatDecimal } from './domain/money.ts';
import type { InvoiceTitle, Party } from './domain/tax-invoice.ts';

/** What is printed: an invoice that was issued, or a credit note, whose amounts are positive. */
export interface PrintedInvoice {
  readonly title: InvoiceTitle | 'Credit Note';
  /** Of its series, made of letters, digits, `/` and `-`. */
  readonly number: string;
  /** Of a credit note: what it corrects. */
  readonly correctsNumber?: string | undefined;
  readonly issuedAt: Temporal.Instant;
  /** The date of `issuedAt` at the customer. */
  readonly issuedOn: Temporal.PlainDate;
  readonly dueOn?: Temporal.PlainDate | undefined;
  readonly supplier: Party;
  readonly recipient: Party;
  readonly currency: string;
  readonly lines: readonly InvoiceLine[];
  readonly totals: InvoiceTotals;
}

const MARGIN = 50;
const GREY = '#555555';

/**
 * Latin, Greek and Cyrillic, and more. pdfkit embeds the glyphs that are used. By a path it reads a
 * font once; by a name that is registered, its tables read the font again for each cell.
 */
const REGULAR = fileURLToPath(import.meta.resolve('dejavu-fonts-ttf/ttf/DejaVuSans.ttf'));
const BOLD = fileURLToPath(import.meta.resolve('dejavu-fonts-ttf/ttf/DejaVuSans-Bold.ttf'));

/**
 * An invoice on A4, tagged for screen readers, with its fonts in it. The same invoice is the same
 * bytes with the same releases of pdfkit and the fonts, so that its hash can be kept.
 */
export async function renderInvoice(invoice: PrintedInvoice): Promise<Uint8Array> {
  const issuedAt = new Date(invoice.issuedAt.epochMilliseconds);
  const doc = new PdfDocument({
    size: 'A4',
    margin: MARGIN,
    pdfVersion: '1.7',
    tagged: true,
    lang: 'en',
    displayTitle: true,
    bufferPages: true,
    font: REGULAR,
    // pdfkit writes the title into XML as it is: no text of a customer may get there.
    info: {
      Title: `${invoice.title} ${invoice.number.replaceAll(/[^\w/-]/g, '')}`,
      CreationDate: issuedAt,
      ModDate: issuedAt,
    },
  });
  const bytes = buffer(doc);
  const body = doc.struct('Document');
  doc.addStructure(body);
  printHead(doc, body, invoice);
  printLines(doc, body, invoice);
  printTotals(doc, body, invoice);
  body.end();
  printPageNumbers(doc);
  doc.end();
  return bytes;
}

type Structure = ReturnType<PDFKit.PDFDocument['struct']>;

function printHead(doc: PDFKit.PDFDocument, body: Structure, invoice: PrintedInvoice): void {
  const { title, number, correctsNumber, issuedOn, dueOn, supplier, recipient } = invoice;
  doc.font(BOLD).fontSize(20).text(title, { structParent: body, structType: 'H1' });
  doc.font(REGULAR).fontSize(9).moveDown(0.5);
  const facts = [
    `Number: ${number}`,
    ...(correctsNumber === undefined ? [] : [`Credit for invoice: ${correctsNumber}`]),
    `Date: ${issuedOn.toString()}`,
    ...(dueOn === undefined ? [] : [`Due: ${dueOn.toString()}`]),
  ];
  for (const fact of facts) doc.text(fact, { structParent: body });
  doc.moveDown();
  const top = doc.y;
  const width = (doc.page.width - 2 * MARGIN) / 2;
  printParty(doc, body, { heading: 'From', party: supplier, x: MARGIN, y: top, width });
  const left = doc.y;
  printParty(doc, body, { heading: 'To', party: recipient, x: MARGIN + width, y: top, width });
  doc.x = MARGIN;
  doc.y = Math.max(left, doc.y);
  doc.moveDown();
}

interface PrintedParty {
  readonly heading: string;
  readonly party: Party;
  readonly x: number;
  readonly y: number;
  readonly width: number;
}

function printParty(doc: PDFKit.PDFDocument, body: Structure, { heading, party, x, y, width }: PrintedParty): void {
  const options = { structParent: body, width: width - 10 };
  doc
    .font(BOLD)
    .fillColor(GREY)
    .text(heading, x, y, { ...options, structType: 'H2' });
  doc.fillColor('black').text(party.name, options).font(REGULAR);
  for (const line of party.address) doc.text(line, options);
  if (party.vatNumber !== undefined) doc.text(`VAT number: ${party.vatNumber}`, options);
}

function printLines(doc: PDFKit.PDFDocument, body: Structure, invoice: PrintedInvoice): void {
  const { currency, lines } = invoice;
  const money = (amount: bigint): string => formatDecimal(amount, currency);
  const tax = taxName(invoice);
  doc.fontSize(8);
  const options = {
    columnStyles: ['*', 52, 65, 40, 70, 60, 70],
    rowStyles: (): PDFKit.Mixins.RowStyle => ({ border: 0, padding: [4, 3, 4, 3] }),
    // Its types do not know it yet; a literal in the call would be refused.
    structParent: body,
  };
  const table = doc.table(options);
  const headings = ['Description', 'Quantity', 'Unit price', `${tax} %`, `Excl. ${tax}`, tax, 'Total'];
  table.row(headings.map((text, column) => ({ ...columnHeading, text, ...sideOf(column) })));
  for (const { description, quantity, unitAmount, taxRate, net, tax: taxAmount, gross } of lines) {
    const amounts = [money(unitAmount), formatTaxRate(taxRate), money(net), money(taxAmount), money(gross)];
    table.row([description, quantity.toString(), ...amounts].map((text, column) => ({ text, ...sideOf(column) })));
  }
  table.end();
}

function printTotals(doc: PDFKit.PDFDocument, body: Structure, invoice: PrintedInvoice): void {
  const { currency, totals } = invoice;
  const tax = taxName(invoice);
  const rows: readonly (readonly [text: string, amount: bigint])[] = [
    [`Total excl. ${tax}`, totals.net],
    ...totals.byRate.map(
      ({ taxRate, tax: amount, net }) =>
        [`${tax} ${formatTaxRate(taxRate)} % of ${formatDecimal(net, currency)}`, amount] as const,
    ),
    [`Total ${currency}`, totals.gross],
  ];
  doc.moveDown().fontSize(9);
  const options = {
    position: { x: doc.page.width / 2, y: doc.y },
    columnStyles: ['*', 90],
    rowStyles: (): PDFKit.Mixins.RowStyle => ({ border: 0, padding: 3 }),
    structParent: body,
  };
  const table = doc.table(options);
  for (const [index, [text, amount]] of rows.entries()) {
    const font = index === rows.length - 1 ? { font: boldFont } : {};
    table.row([
      { ...rowHeading, text, ...font },
      { text: formatDecimal(amount, currency), ...sideOf(1), ...font },
    ]);
  }
  table.end();
}

/** Numbers are in the margin, where screen readers do not read them. */
function printPageNumbers(doc: PDFKit.PDFDocument): void {
  const { count } = doc.bufferedPageRange();
  for (let page = 0; page < count; page += 1) {
    doc.switchToPage(page);
    // Text below the margin would begin another page.
    doc.page.margins.bottom = 0;
    doc.markContent('Artifact', { type: 'Pagination' });
    doc.font(REGULAR).fontSize(8).fillColor(GREY);
    const width = doc.page.width - 2 * MARGIN;
    doc.text(`Page ${page + 1} of ${count}`, MARGIN, doc.page.height - 30, { width, align: 'right', lineBreak: false });
    doc.endMarkedContent();
  }
}

const boldFont = { src: BOLD };
const rowHeading = { type: 'TH', scope: 'Row' } as const;
const columnHeading = { type: 'TH', scope: 'Column', font: boldFont, backgroundColor: '#eeeeee' } as const;

function sideOf(column: number): { readonly align: { readonly x: 'left' | 'right' } } {
  return { align: { x: column === 0 ? 'left' : 'right' } };
}

function taxName({ supplier }: PrintedInvoice): string {
  return supplier.vatNumber === undefined ? 'Tax' : 'VAT';
}
