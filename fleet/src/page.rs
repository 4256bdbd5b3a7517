//! An answer as it is shown: a title, sentences, and tables of cells. Text and HTML are made from it.

/// Everything shown.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// What was asked.
    pub title: String,
    /// The answer in words, the most important first.
    pub sentences: Vec<String>,
    /// The figures.
    pub tables: Vec<Table>,
    /// What is below the figures.
    pub sections: Vec<Section>,
}

/// Items below a heading.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// Its heading.
    pub heading: String,
    /// The items, the most important first.
    pub items: Vec<Item>,
}

/// An item: a title, and the lines below it. A line that begins with two spaces is a command to type.
#[derive(Clone, Debug, Default)]
pub struct Item {
    /// Its title.
    pub title: String,
    /// More about it.
    pub lines: Vec<String>,
}

/// A table of cells.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// The titles of the columns.
    pub columns: Vec<Column>,
    /// The cells of each row.
    pub rows: Vec<Vec<String>>,
}

/// A column of a table.
#[derive(Clone, Debug)]
pub struct Column {
    /// Its title.
    pub title: String,
    /// Whether it has figures, which are aligned to the right.
    pub is_figure: bool,
}

impl Column {
    /// A column of names.
    #[must_use]
    pub fn name(title: &str) -> Column {
        Column {
            title: title.to_owned(),
            is_figure: false,
        }
    }

    /// A column of figures.
    #[must_use]
    pub fn figure(title: &str) -> Column {
        Column {
            title: title.to_owned(),
            is_figure: true,
        }
    }
}
