// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A list of values as chips with a field for one more. Return takes what is typed; Delete on a chip takes it away. A
// value that is refused keeps standing in the field, with a bad frame and a line that says why.

#include <QStringList>
#include <QWidget>
#include <functional>

class QGridLayout;
class QLineEdit;

namespace vitrine::ui {

class TextLabel;

class ChipRow final : public QWidget {
    Q_OBJECT

public:
    /// `add` gives the whole list after a text was typed, or throws std::exception with what is wrong with it.
    using Add = std::function<QStringList(const QStringList& before, const QString& typed)>;

    ChipRow(const QString& name, Add add, QWidget* parent = nullptr);

    void setValues(const QStringList& values);
    const QStringList& values() const { return values_; }
    void setEditable(bool on);
    QLineEdit* field() const { return field_; }
    QString problem() const;

signals:
    void valuesChanged();

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    void rebuild();
    void take();
    void removeAt(qsizetype index);

    Add add_;
    QStringList values_;
    bool editable_ = true;
    QGridLayout* grid_;
    QLineEdit* field_;
    TextLabel* problem_;
};

} // namespace vitrine::ui
