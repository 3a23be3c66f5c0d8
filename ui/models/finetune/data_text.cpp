// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/finetune/data_text.h"

#include <QObject>
#include <QStringList>
#include <algorithm>
#include <cmath>

#include "ui/models/common/format.h"

namespace vitrine::ui {

namespace {

QString rowsText(std::int64_t count) {
    return count == 1 ? QObject::tr("1 row") : QObject::tr("%1 rows").arg(countText(count));
}

/// "0.4 %" of parts below one in ten, "38 %" of others.
QString roundedShare(double share) {
    const double percent = share * 100;
    return QObject::tr("%1 %").arg(percent, 0, 'f', percent < 10 ? 1 : 0).replace(QLatin1Char(' '), QChar(0xA0));
}

QString counted(std::int64_t count, const QString& one, const QString& many) {
    return count == 1 ? QObject::tr("1 %1").arg(one) : QStringLiteral("%1 %2").arg(countText(count), many);
}

QStringList leftOutParts(const engine::DataSummary& s) {
    QStringList parts;
    const auto add = [&parts](std::int64_t count, const QString& one, const QString& many) {
        if (count > 0) {
            parts << counted(count, one, many);
        }
    };
    add(s.duplicates, QObject::tr("duplicate"), QObject::tr("duplicates"));
    add(s.noAnswer, QObject::tr("row without an assistant turn"), QObject::tr("rows without an assistant turn"));
    add(s.unreadable, QObject::tr("unreadable line"), QObject::tr("unreadable lines"));
    add(s.tooLong, QObject::tr("row longer than a sequence"), QObject::tr("rows longer than a sequence"));
    return parts;
}

/// "user", "assistant": of the turn that a token stands in.
const TurnSpan* turnAt(const RowTokens& row, std::int64_t token) {
    const auto found = std::find_if(row.turns.begin(), row.turns.end(),
                                    [token](const TurnSpan& turn) { return token >= turn.begin && token < turn.end; });
    return found == row.turns.end() ? nullptr : &*found;
}

QString whyOf(const RowTokens& row, std::int64_t token) {
    switch (row.kinds[static_cast<std::size_t>(token)]) {
    case TokenKind::Trained:
        return QObject::tr("trained");
    case TokenKind::Lost:
        return QObject::tr("lost behind the cut");
    case TokenKind::NotTrained:
        break;
    }
    const TurnSpan* turn = turnAt(row, token);
    if (turn != nullptr && turn->trained == 0) {
        return QObject::tr("not trained: %1").arg(turn->role);
    }
    return turn != nullptr ? QObject::tr("not trained: written by the template") : QObject::tr("not trained");
}

QString glyphsOf(const RowTokens& row, std::int64_t token) {
    return tokenGlyphs(row.cells[static_cast<std::size_t>(token)].bytes);
}

} // namespace

QString plainText(const SentenceParts& sentence) {
    QString text;
    for (const SentencePart& part : sentence) {
        text += part.text;
    }
    return text;
}

QString placeWord(const engine::DataSummary& summary, bool small) {
    return summary.inArray ? small ? QObject::tr("row") : QObject::tr("Row")
           : small         ? QObject::tr("line")
                           : QObject::tr("Line");
}

SentenceParts dataSentence(const DataSet& set) {
    const engine::DataSummary& s = set.summary;
    if (s.trained == 0) {
        return {{QObject::tr("No token carries loss: the rows have no answer that is kept."), SentenceTone::Bad}};
    }
    const QString share = QObject::tr("%1").arg(roundedShare(s.trainedShare()));
    SentenceParts out;
    if (s.stopped) {
        out.push_back({QObject::tr("Reading was stopped after %1: ").arg(rowsText(s.rows)), SentenceTone::Warn});
    }
    if (s.cut.empty() && s.leftOutRows() == 0) {
        out.push_back({QObject::tr("All %1 rows").arg(countText(s.rows)), SentenceTone::Strong});
        out.push_back({QObject::tr(" are used whole; ")});
    } else {
        out.push_back({countText(s.used), SentenceTone::Strong});
        out.push_back({QObject::tr(" of %1 are used; ").arg(rowsText(s.rows))});
    }
    if (!s.cut.empty()) {
        const std::int64_t cut = s.cutRows;
        out.push_back(
            {cut == 1 ? QObject::tr("1 is cut") : QObject::tr("%1 are cut").arg(countText(cut)), SentenceTone::Warn});
        out.push_back({(cut == 1 ? QObject::tr(" at %1 tokens and loses ") : QObject::tr(" at %1 tokens and lose "))
                           .arg(countText(s.length))});
        out.push_back({QObject::tr("%1 tokens").arg(countText(s.lost)), SentenceTone::Warn});
        out.push_back({QObject::tr(" (%1); ").arg(roundedShare(s.lostShare()))});
    }
    out.push_back({share, SentenceTone::Strong});
    out.push_back({QObject::tr(" of all tokens carry loss.")});
    return out;
}

QString dataSecondLine(const DataSet& set) {
    const engine::DataSummary& s = set.summary;
    const auto sequences = [&](std::int64_t count) {
        return !set.data.packs ? counted(count, QObject::tr("sequence"), QObject::tr("sequences"))
                               : counted(count, QObject::tr("packed sequence"), QObject::tr("packed sequences"));
    };
    QString text = (s.trainRows == 1 ? QObject::tr("%1 trains in %2") : QObject::tr("%1 train in %2"))
                       .arg(rowsText(s.trainRows), sequences(s.sequences));
    text +=
        s.validationRows == 0
            ? QObject::tr("; no validation rows.")
            : QObject::tr(", %1 validate in %2.").arg(countText(s.validationRows), countText(s.validationSequences));
    if (s.sequences == 1) {
        text += QObject::tr(" One step an epoch.");
    }
    if (const QStringList parts = leftOutParts(s); !parts.isEmpty()) {
        text += QObject::tr(" Left out: %1.").arg(parts.join(QStringLiteral(", ")));
    }
    if (s.keepNoAnswer > 0) {
        text +=
            s.keepNoAnswer == 1
                ? QObject::tr(" 1 cut row keeps no answer; no sequence takes it.")
                : QObject::tr(" %1 cut rows keep no answer; no sequence takes them.").arg(countText(s.keepNoAnswer));
    }
    return text;
}

SentenceParts readingSentence(const DataCounts& counts) {
    SentenceParts out;
    out.push_back(
        {counts.expectedRows > counts.rows
             ? QObject::tr("Read %1 of about %2 rows: ").arg(countText(counts.rows), countText(counts.expectedRows))
             : QObject::tr("Read %1: ").arg(rowsText(counts.rows))});
    out.push_back({countText(counts.used), SentenceTone::Strong});
    out.push_back({QObject::tr(" are used.")});
    return out;
}

QString rowKindText(const DataSet& set) {
    const engine::DataSummary& s = set.summary;
    return s.conversations == s.used       ? QObject::tr("chat, messages")
           : s.conversations > 0           ? QObject::tr("chat and others")
           : set.data.tokenizer == nullptr ? QObject::tr("tokens")
                                           : QObject::tr("text or tokens");
}

QString rowFacts(const RowTokens& row) {
    const QString trained = QObject::tr("%1 tokens, %2 trained").arg(countText(row.tokens()), countText(row.trained));
    return row.turns.empty() ? trained
                             : QObject::tr("%1 in %2")
                                   .arg(trained, counted(row.answers, QObject::tr("answer"), QObject::tr("answers")));
}

QString sequenceFacts(const engine::SequenceLayout& layout) {
    const double share =
        layout.tokens > 0 ? static_cast<double>(layout.trained) / static_cast<double>(layout.tokens) : 0;
    return QObject::tr("%1, %2 tokens, %3 trained, %4 padding")
        .arg(rowsText(static_cast<std::int64_t>(layout.rows.size())), countText(layout.tokens), shareText(share),
             countText(layout.length - layout.tokens));
}

QString tokenReadout(const RowTokens& row, std::int64_t token) {
    const auto at = static_cast<std::size_t>(token);
    QString text = QObject::tr("Token %1 “%2”: id %3, %4; position %1 of row %5")
                       .arg(countText(token), glyphsOf(row, token), QString::number(row.ids[at]), whyOf(row, token),
                            countText(row.line));
    if (row.kinds[at] != TokenKind::Lost) {
        text += QObject::tr(", %1 of sequence %2")
                    .arg(countText(row.place + token - row.keptBegin), countText(row.sequence + 1));
    }
    return text;
}

QString tokenSpoken(const RowTokens& row, std::int64_t token) {
    const QString why = whyOf(row, token);
    QString text =
        QObject::tr("Row %1. Token %2, %3. %4.")
            .arg(countText(row.line), countText(token), glyphsOf(row, token), why.left(1).toUpper() + why.mid(1));
    const TurnSpan* turn = turnAt(row, token);
    if (turn != nullptr && turn->trained > 0) {
        const auto before = std::count_if(row.turns.begin(), row.turns.end(), [turn](const TurnSpan& each) {
            return each.trained > 0 && each.begin <= turn->begin;
        });
        text += QObject::tr(" Answer %1 of %2.").arg(before).arg(row.answers);
    }
    return text;
}

std::vector<const engine::LeftOutRow*> leftOutFor(const engine::DataSummary& summary, engine::LeftOutReason reason) {
    std::vector<const engine::LeftOutRow*> out;
    for (const engine::LeftOutRow& row : summary.leftOut) {
        if (row.reason == reason) {
            out.push_back(&row);
        }
    }
    return out;
}

std::int64_t leftOutCount(const engine::DataSummary& s, engine::LeftOutReason reason) {
    switch (reason) {
    case engine::LeftOutReason::Unreadable:
        return s.unreadable;
    case engine::LeftOutReason::NoAnswer:
        return s.noAnswer;
    case engine::LeftOutReason::Duplicate:
        return s.duplicates;
    case engine::LeftOutReason::TooLong:
        return s.tooLong;
    }
    return 0;
}

QString leftOutName(engine::LeftOutReason reason) {
    switch (reason) {
    case engine::LeftOutReason::Unreadable:
        return QObject::tr("unreadable");
    case engine::LeftOutReason::NoAnswer:
        return QObject::tr("no assistant turn");
    case engine::LeftOutReason::Duplicate:
        return QObject::tr("duplicates");
    case engine::LeftOutReason::TooLong:
        return QObject::tr("skipped, too long");
    }
    return {};
}

} // namespace vitrine::ui
