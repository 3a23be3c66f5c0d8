// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Captured tensors of a program and their small editors: lengths of documents in a table, other numbers in a field.

#include <map>

#include "ui/models/common/flat_tree.h"
#include "ui/models/mask_lab/mask_study.h"
#include "ui/widgets/base/controls.h"

class QLineEdit;
class QPlainTextEdit;
class QTreeView;
class QVBoxLayout;

namespace vitrine::ui {

/// One tensor.
class CaptureEditor final : public QWidget {
    Q_OBJECT

public:
    explicit CaptureEditor(const QString& name, QWidget* parent = nullptr);

    void setCapture(const MaskCapture& capture, std::int64_t block);
    /// Marks the documents of a query and a key; -1: none.
    void setPointed(std::int64_t q, std::int64_t kv);
    const QString& name() const { return capture_.name; }
    QTreeView* table() const { return table_; }
    QPushButton* editButton() const { return edit_; }
    QPushButton* fromRunButton() const { return fromRun_; }
    QPlainTextEdit* lengthsEdit() const { return lengths_; }
    QLineEdit* valuesEdit() const { return values_; }

signals:
    void edited(const QString& name, const QString& line);
    void fromRunWanted(const QString& name);

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    void editLengths(bool on);
    void takeLengths();
    void updateTable();

    MaskCapture capture_;
    std::int64_t block_ = 128;
    std::vector<std::int64_t> shownLengths_;
    std::int64_t shownBlock_ = 0;
    TextLabel *facts_, *warning_;
    QTreeView* table_;
    FlatTreeModel* model_;
    QPlainTextEdit* lengths_;
    QLineEdit* values_;
    QWidget* buttons_;
    QPushButton *edit_, *fromRun_, *cancel_;
    bool editing_ = false;
};

class CapturePanel final : public QWidget {
    Q_OBJECT

public:
    explicit CapturePanel(QWidget* parent = nullptr);

    void setCaptures(const std::vector<MaskCapture>& captures, std::int64_t block, const QString& file);
    void setPointed(std::int64_t q, std::int64_t kv);
    CaptureEditor* editor(const QString& name) const;
    QPushButton* fileButton() const { return file_; }

signals:
    void edited(const QString& name, const QString& line);
    void fromRunWanted(const QString& name);
    void fileWanted();

private:
    QVBoxLayout* column_;
    std::map<QString, CaptureEditor*> editors_;
    DockHeader* header_;
    QPushButton* file_;
    TextLabel* fileName_;
};

} // namespace vitrine::ui
