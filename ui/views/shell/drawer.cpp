// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/shell/drawer.h"

#include <QHeaderView>
#include <QInputDialog>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QTreeView>
#include <QVBoxLayout>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "ui/models/flat_tree.h"
#include "ui/models/format.h"
#include "ui/widgets/style.h"

namespace vitrine::ui {

namespace {

QPlainTextEdit* textPage(const QString& name, QWidget* parent) {
    auto* page = new QPlainTextEdit(parent);
    page->setReadOnly(true);
    page->setFrameShape(QFrame::NoFrame);
    page->setAccessibleName(name);
    page->setFont(Theme::instance().monoFont(TypeRole::Table));
    return page;
}

QString shellQuoted(const QString& text) {
    static const QString kSafe = QStringLiteral("-_./:=,+@%");
    const bool plain = !text.isEmpty() && std::all_of(text.begin(), text.end(), [](QChar c) {
        return (c.unicode() < 128 && c.isLetterOrNumber()) || kSafe.contains(c);
    });
    if (plain) {
        return text;
    }
    QString quoted = text;
    quoted.replace(QLatin1Char('\''), QLatin1String("'\\''"));
    return QLatin1Char('\'') + quoted + QLatin1Char('\'');
}

} // namespace

Drawer::Drawer(const ViewContext& context, QWidget* parent) : QTabWidget(parent), context_(context) {
    setDocumentMode(true);
    auto* notesPage = new QWidget(this);
    auto* column = new QVBoxLayout(notesPage);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    notes_ = new QTreeView(notesPage);
    notes_->setRootIsDecorated(false);
    notes_->setUniformRowHeights(true);
    notes_->setFrameShape(QFrame::NoFrame);
    notes_->setAccessibleName(tr("Notes"));
    notesModel_ = new FlatTreeModel(this);
    notes_->setModel(notesModel_);
    auto* add = new QPushButton(tr("Note at the cursor…"), notesPage);
    setControlHeight(add, 22);
    column->addWidget(notes_, 1);
    column->addWidget(add, 0, Qt::AlignLeft);
    addTab(notesPage, tr("Notes"));
    log_ = textPage(tr("Log"), this);
    log_->setPlaceholderText(tr("This run wrote no log."));
    addTab(log_, tr("Log"));
    command_ = textPage(tr("Command line"), this);
    addTab(command_, tr("Command line"));
    connect(add, &QPushButton::clicked, this, [this] {
        const sessions::RunId run = context_.document->runA();
        const QString text = QInputDialog::getText(this, tr("Note"), tr("Text"));
        if (run == 0 || text.isEmpty()) {
            return;
        }
        const TimeRange range = context_.time->measured().value_or(
            TimeRange{context_.time->cursor().value_or(0), context_.time->cursor().value_or(0)});
        sessions::TimelineNote note{0, range.begin, range.end, text.toStdString()};
        context_.document->edit([run, note](sessions::SessionFile& file) { file.addTimelineNote(run, note); });
        refresh();
    });
    connect(notes_, &QTreeView::activated, this, [this](const QModelIndex& index) {
        if (const FlatNode* node = notesModel_->node(index); node != nullptr && node->key < noteRows_.size()) {
            context_.time->goTo(noteRows_[node->key].timeBegin);
        }
    });
    connect(context_.document, &SessionDocument::selectionChanged, this, &Drawer::refresh);
    connect(context_.document, &SessionDocument::opened, this, &Drawer::refresh);
    connect(context_.document, &SessionDocument::closed, this, &Drawer::refresh);
    refresh();
}

void Drawer::refresh() {
    const sessions::RunId id = context_.document->runA();
    const sessions::RunInfo* run = context_.document->run(id);
    command_->setPlainText(run != nullptr ? commandLine(*run) : QString());
    log_->clear();
    showNotes({});
    if (run == nullptr) {
        return;
    }
    context_.document->readTexts(id, this, [this](const std::vector<sessions::RunText>& texts) {
        for (const sessions::RunText& text : texts) {
            if (text.kind == "log") {
                log_->setPlainText(QString::fromStdString(text.body));
            }
        }
    });
    context_.document->readNotes(id, this,
                                 [this](const std::vector<sessions::TimelineNote>& notes) { showNotes(notes); });
}

void Drawer::showNotes(const std::vector<sessions::TimelineNote>& notes) {
    noteRows_ = notes;
    auto table = std::make_shared<FlatTree>();
    table->columns = {{tr("Time"), true}, {tr("Length"), true}, {tr("Note"), false}};
    for (std::size_t i = 0; i < notes.size(); ++i) {
        FlatNode node;
        node.key = i;
        node.cells = {FlatCell(instantText(notes[i].timeBegin), qint64(notes[i].timeBegin)),
                      FlatCell(notes[i].timeEnd > notes[i].timeBegin
                                   ? durationText(notes[i].timeEnd - notes[i].timeBegin)
                                   : unknownText(),
                               qint64(notes[i].timeEnd - notes[i].timeBegin)),
                      FlatCell(QString::fromStdString(notes[i].body))};
        table->nodes.push_back(std::move(node));
    }
    notesModel_->setTree(std::move(table));
}

QString Drawer::commandLine(const sessions::RunInfo& run) {
    const nlohmann::json spec = nlohmann::json::parse(run.specJson, nullptr, false);
    if (!spec.is_object()) {
        return {};
    }
    QString line = QStringLiteral("vitrine ") + QString::fromStdString(run.workload);
    for (const auto& [key, value] : spec.items()) {
        if (key == "vitrine" || key == "workload" || value.is_null() || value.is_object()) {
            continue;
        }
        const QString flag =
            QStringLiteral(" --") + QString::fromStdString(key).replace(QLatin1Char('_'), QLatin1Char('-'));
        if (value.is_boolean()) {
            line += value.get<bool>() ? flag : QString();
        } else if (value.is_string()) {
            const QString text = QString::fromStdString(value.get<std::string>());
            line += text.isEmpty() ? QString() : flag + QLatin1Char(' ') + shellQuoted(text);
        } else if (value.is_array()) {
            QStringList parts;
            for (const nlohmann::json& item : value) {
                parts << QString::fromStdString(item.is_string() ? item.get<std::string>() : item.dump());
            }
            line += parts.isEmpty() ? QString() : flag + QLatin1Char(' ') + shellQuoted(parts.join(QLatin1Char(',')));
        } else {
            line += flag + QLatin1Char(' ') + QString::fromStdString(value.dump());
        }
    }
    return line;
}

} // namespace vitrine::ui
