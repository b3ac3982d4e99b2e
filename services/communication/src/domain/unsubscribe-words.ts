/** What the link of marketing mails and the page behind it say. `{address}` stands for the recipient. */
export interface UnsubscribeWords {
  /** BCP 47. */
  readonly language: string;
  readonly unsubscribe: string;
  readonly question: string;
  readonly note: string;
  readonly unsubscribed: string;
  readonly stopped: string;
  readonly again: string;
  readonly subscribed: string;
  readonly resumed: string;
  readonly badLink: string;
  readonly badLinkHelp: string;
  readonly tryAgain: string;
  readonly notKept: string;
}

const english: UnsubscribeWords = {
  language: 'en',
  unsubscribe: 'Unsubscribe',
  question: 'Stop marketing mail from this sender to {address}?',
  note: 'Receipts, codes and other mail that you ask for are not marketing, and still come.',
  unsubscribed: 'Unsubscribed',
  stopped: '{address} gets no more marketing mail from this sender.',
  again: 'Subscribe again',
  subscribed: 'Subscribed again',
  resumed: '{address} gets marketing mail from this sender again.',
  badLink: 'This link does not work',
  badLinkHelp: 'Part of it may be missing. Use the link in the mail as it is.',
  tryAgain: 'Please try again',
  notKept: 'This could not be kept just now. Try again in a moment.',
};

const portuguese: UnsubscribeWords = {
  language: 'pt',
  unsubscribe: 'Cancelar subscrição',
  question: 'Deixar de enviar publicidade deste remetente para {address}?',
  note: 'Recibos, códigos e outras mensagens que pedir não são publicidade e continuam a chegar.',
  unsubscribed: 'Subscrição cancelada',
  stopped: '{address} não recebe mais publicidade deste remetente.',
  again: 'Subscrever de novo',
  subscribed: 'Subscrição retomada',
  resumed: '{address} volta a receber publicidade deste remetente.',
  badLink: 'Esta ligação não funciona',
  badLinkHelp: 'Talvez falte uma parte. Use a ligação da mensagem tal como está.',
  tryAgain: 'Tente novamente',
  notKept: 'Não foi possível guardar agora. Tente novamente dentro de momentos.',
};

const others: readonly UnsubscribeWords[] = [
  {
    language: 'af',
    unsubscribe: 'Teken uit',
    question: 'Moet bemarkingspos van hierdie sender aan {address} ophou?',
    note: 'Kwitansies, kodes en ander pos wat u aanvra, is nie bemarking nie en kom steeds.',
    unsubscribed: 'Uitgeteken',
    stopped: '{address} kry geen bemarkingspos meer van hierdie sender nie.',
    again: 'Teken weer in',
    subscribed: 'Weer ingeteken',
    resumed: '{address} kry weer bemarkingspos van hierdie sender.',
    badLink: 'Hierdie skakel werk nie',
    badLinkHelp: '’n Deel daarvan ontbreek dalk. Gebruik die skakel in die pos soos dit is.',
    tryAgain: 'Probeer asseblief weer',
    notKept: 'Dit kon nie nou gestoor word nie. Probeer oor ’n oomblik weer.',
  },
  {
    language: 'de',
    unsubscribe: 'Abmelden',
    question: 'Keine Werbemails dieses Absenders mehr an {address}?',
    note: 'Belege, Codes und andere Mails, die Sie anfordern, sind keine Werbung und kommen weiterhin.',
    unsubscribed: 'Abgemeldet',
    stopped: '{address} erhält keine Werbemails dieses Absenders mehr.',
    again: 'Wieder anmelden',
    subscribed: 'Wieder angemeldet',
    resumed: '{address} erhält wieder Werbemails dieses Absenders.',
    badLink: 'Dieser Link funktioniert nicht',
    badLinkHelp: 'Vielleicht fehlt ein Teil davon. Verwenden Sie den Link aus der Mail unverändert.',
    tryAgain: 'Bitte versuchen Sie es noch einmal',
    notKept: 'Das konnte gerade nicht gespeichert werden. Versuchen Sie es gleich noch einmal.',
  },
  {
    language: 'es',
    unsubscribe: 'Darse de baja',
    question: '¿Dejar de enviar publicidad de este remitente a {address}?',
    note: 'Los recibos, los códigos y otros correos que usted pida no son publicidad y seguirán llegando.',
    unsubscribed: 'Baja confirmada',
    stopped: '{address} ya no recibe publicidad de este remitente.',
    again: 'Suscribirse de nuevo',
    subscribed: 'Suscripción reanudada',
    resumed: '{address} vuelve a recibir publicidad de este remitente.',
    badLink: 'Este enlace no funciona',
    badLinkHelp: 'Puede que falte una parte. Use el enlace del correo tal como está.',
    tryAgain: 'Inténtelo de nuevo',
    notKept: 'No se ha podido guardar ahora. Inténtelo de nuevo en un momento.',
  },
  {
    language: 'fr',
    unsubscribe: 'Se désabonner',
    question: 'Ne plus envoyer de publicité de cet expéditeur à {address} ?',
    note: 'Les reçus, les codes et les autres messages que vous demandez ne sont pas de la publicité et arrivent toujours.',
    unsubscribed: 'Désabonnement confirmé',
    stopped: '{address} ne reçoit plus de publicité de cet expéditeur.',
    again: 'Se réabonner',
    subscribed: 'Réabonnement confirmé',
    resumed: '{address} reçoit de nouveau la publicité de cet expéditeur.',
    badLink: 'Ce lien ne fonctionne pas',
    badLinkHelp: 'Il en manque peut-être une partie. Utilisez le lien du message tel quel.',
    tryAgain: 'Veuillez réessayer',
    notKept: 'Cela n’a pas pu être enregistré. Réessayez dans un instant.',
  },
  {
    language: 'it',
    unsubscribe: 'Annulla iscrizione',
    question: 'Interrompere la pubblicità di questo mittente a {address}?',
    note: 'Ricevute, codici e altri messaggi che richiede non sono pubblicità e continuano ad arrivare.',
    unsubscribed: 'Iscrizione annullata',
    stopped: '{address} non riceve più pubblicità da questo mittente.',
    again: 'Iscriversi di nuovo',
    subscribed: 'Iscrizione ripresa',
    resumed: '{address} riceve di nuovo pubblicità da questo mittente.',
    badLink: 'Questo link non funziona',
    badLinkHelp: 'Forse ne manca una parte. Usi il link del messaggio così com’è.',
    tryAgain: 'Riprovi',
    notKept: 'Non è stato possibile salvare ora. Riprovi tra un momento.',
  },
  {
    language: 'nl',
    unsubscribe: 'Uitschrijven',
    question: 'Geen reclame van deze afzender meer naar {address}?',
    note: 'Bonnen, codes en andere mail waar u om vraagt is geen reclame en blijft komen.',
    unsubscribed: 'Uitgeschreven',
    stopped: '{address} krijgt geen reclame van deze afzender meer.',
    again: 'Weer inschrijven',
    subscribed: 'Weer ingeschreven',
    resumed: '{address} krijgt weer reclame van deze afzender.',
    badLink: 'Deze link werkt niet',
    badLinkHelp: 'Misschien ontbreekt er een deel. Gebruik de link in de mail zoals die is.',
    tryAgain: 'Probeer het opnieuw',
    notKept: 'Dit kon nu niet worden opgeslagen. Probeer het zo meteen opnieuw.',
  },
  portuguese,
  {
    ...portuguese,
    language: 'pt-BR',
    unsubscribe: 'Cancelar inscrição',
    note: 'Recibos, códigos e outras mensagens que você pedir não são publicidade e continuam chegando.',
    unsubscribed: 'Inscrição cancelada',
    again: 'Inscrever-se de novo',
    subscribed: 'Inscrição retomada',
    badLink: 'Este link não funciona',
    badLinkHelp: 'Talvez falte uma parte. Use o link da mensagem como está.',
    notKept: 'Não foi possível salvar agora. Tente novamente em instantes.',
  },
];

const byLanguage = new Map([english, ...others].map((words) => [words.language.toLowerCase(), words]));

/** Pure. In the first of the languages (BCP 47) that is known here, or at least without its region; else in English. */
export function unsubscribeWordsIn(languages: readonly string[]): UnsubscribeWords {
  for (const language of languages) {
    const tag = language.toLowerCase();
    const words = byLanguage.get(tag) ?? byLanguage.get(tag.split('-', 1)[0] ?? '');
    if (words !== undefined) return words;
  }
  return english;
}
