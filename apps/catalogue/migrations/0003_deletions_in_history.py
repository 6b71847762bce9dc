from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('catalogue', '0002_supplier_email'),
    ]

    operations = [
        migrations.AlterField(
            model_name='change',
            name='after',
            field=models.CharField(blank=True, max_length=200, verbose_name='after'),
        ),
    ]
